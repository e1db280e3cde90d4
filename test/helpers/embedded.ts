import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import { createClient } from '../../db/driver/client.ts'
import { startEmbedded, type EmbeddedOptions, type EmbeddedServer } from '../../node/embedded/server.ts'
import { slowNode, TEST_TIMEOUT_MS } from './deadlines.ts'
import { nodeCommand } from './node.ts'

/** Settings of a server whose data need not survive a crash of the machine. */
export const quick = { fsync: 'off' }

/** Starts a server that is stopped when the test ends. */
export async function start (
  t: Test, dataDir: string, options: Partial<EmbeddedOptions> = {}
): Promise<EmbeddedServer> {
  const server = await startEmbedded({ dataDir, settings: quick, deadlines: slowNode, ...options })
  t.teardown(() => server.stop())
  return server
}

/**
 * Returns the test's folder. tap removes it before the teardowns run, unless there was a teardown before the folder.
 */
export function folder (t: Test, content?: Parameters<Test['testdir']>[0]): string {
  t.teardown(() => {})
  return t.testdir(content)
}

/** Runs a query on a separate connection and returns its rows. */
export async function query (url: string, text: string): Promise<Record<string, unknown>[]> {
  // A connection that is lost while it asks for types causes an unhandled rejection (porsager/postgres#1192).
  const sql = createClient(url, { max: 1, onnotice: () => {}, connect_timeout: 30, fetch_types: false })
  try {
    return [...await sql.unsafe(text)]
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/**
 * Calls `check` until it returns something, and returns that. If `check` throws, it is called again. Throws after
 * `TEST_TIMEOUT_MS`.
 */
export async function until<T> (what: string, check: () => Promise<T | false | undefined>): Promise<T> {
  for (const deadline = Date.now() + TEST_TIMEOUT_MS; Date.now() < deadline; await setTimeout(20)) {
    const result = await check().catch(() => undefined)
    if (result) return result
  }
  throw new Error(`timed out after ${TEST_TIMEOUT_MS / 1000} s, waiting for: ${what}`)
}

export const pidFile = (dataDir: string) => join(dataDir, 'postgres/data/postmaster.pid')

/** Returns the process id of the server. */
export const postmaster = async (dataDir: string) => parseInt(await readFile(pidFile(dataDir), 'utf8'))

/** Returns whether no server is running. */
export const isDown = (dataDir: string) => stat(pidFile(dataDir)).then(() => false, () => true)

export interface OtherNodeOptions extends SpawnOptions {
  /** The words before its command. */
  before?: string[]
  tcp?: boolean
}

export interface OtherNode {
  readonly child: ChildProcess
  readonly lines: AsyncIterator<string>
  server (): Promise<Omit<EmbeddedServer, 'stop'>>
}

/** Starts the server in another process, which prints the result and runs until it is killed or its input ends. */
export async function otherNode (
  t: Test, dataDir: string, { before = [], tcp = false, ...options }: OtherNodeOptions = {}
): Promise<OtherNode> {
  const code = `
    import { startEmbedded } from ${JSON.stringify(new URL('../../node/embedded/server.ts', import.meta.url).href)}
    const deadlines = ${JSON.stringify(slowNode)}
    const log = (line) => console.log(JSON.stringify({ line }))
    const [dataDir, settings] = [${JSON.stringify(dataDir)}, { fsync: 'off' }]
    const { stop, ...server } = await startEmbedded({ dataDir, tcp: ${tcp}, settings, deadlines, log })
    console.log(JSON.stringify(server))
    process.stdin.resume().once('end', stop)`
  const { command: [file, args], env } = nodeCommand(['--input-type=module', '-e', code])
  const [first = file, ...rest] = [...before, file, ...args]
  const child = spawn(first, rest, { env, stdio: ['pipe', 'pipe', 'inherit'], ...options })
  t.teardown(async () => {
    child.stdin!.end()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const lines = createInterface(child.stdout!)[Symbol.asyncIterator]()
  return {
    child,
    lines,
    async server () {
      for (;;) {
        const said = JSON.parse((await lines.next()).value as string)
        if (said.url) return said
      }
    }
  }
}

/** Kills a process and waits for its end. */
export async function kill (child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}
