import { execFile } from 'node:child_process'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { main } from '../../node/commands/index.ts'
import { Shell } from '../../node/terminal/shell.ts'
import { FACTOR } from './deadlines.ts'
import { messagesIn, nodeCommand, nodeEnvironment } from './node.ts'

const server = fileURLToPath(new URL('../../node/server.ts', import.meta.url))

// A busy machine makes a command slow, and its database does not seem to be silent.
const defaults = { DATABASE_URL: '', DEADLINE_FACTOR: String(FACTOR) }

/** What a command has printed, and its exit code. */
export interface Ran {
  readonly stdout: string
  readonly stderr: string
  readonly code: number | undefined
}

class Collected extends Writable {
  text = ''

  override _write (chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += chunk
    done()
  }
}

/** Returns what a command of this process gets: its own streams, which are no terminal, an environment and a folder. */
export function surroundings (env: NodeJS.ProcessEnv, cwd: string, input = '') {
  return { env, cwd, stdin: Readable.from([Buffer.from(input)]), stdout: new Collected(), stderr: new Collected() }
}

/** Returns a shell for the functions of commands. */
export const createShell = (env: NodeJS.ProcessEnv, cwd: string): Shell => new Shell(surroundings(env, cwd))

/** Runs a command of the command line in this process, with settings, in a folder. Never rejects. */
export async function runCommand (
  args: readonly string[], settings: Record<string, string>, cwd: string, input?: string
): Promise<Ran> {
  return run(args, { ...process.env, ...defaults, ...settings }, cwd, input)
}

/**
 * Runs the command `start` in this process, with the environment of `spawnNode`. The checks of its settings must fail,
 * because a node needs a process of its own. `stderr` has the messages, and `rawStderr` their entries.
 */
export async function failStart (
  settings: Record<string, string>, cwd: string
): Promise<Ran & { readonly rawStderr: string }> {
  const { stderr, ...ran } = await run([], nodeEnvironment(settings), cwd)
  return { ...ran, stderr: messagesIn(stderr), rawStderr: stderr }
}

async function run (args: readonly string[], env: NodeJS.ProcessEnv, cwd: string, input?: string): Promise<Ran> {
  const given = surroundings(env, cwd, input)
  const code = await main({ args, ...given })
  return { stdout: given.stdout.text, stderr: given.stderr.text, code }
}

/** Runs a command like `runCommand`, as a process. */
export async function spawnCommand (
  args: readonly string[], settings: Record<string, string>, cwd: string, input = ''
): Promise<Ran> {
  const { command: [file, words], env } = nodeCommand([server, ...args])
  const running = promisify(execFile)(file, words, { cwd, env: { ...env, ...defaults, ...settings } })
  running.child.stdin!.on('error', () => {}).end(input)
  return running.then((output) => ({ ...output, code: 0 }), (error: Ran) =>
    ({ stdout: error.stdout, stderr: error.stderr, code: error.code }))
}
