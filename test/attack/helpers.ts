import { spawn, type ChildProcess } from 'node:child_process'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'

// The generators run on the same cores as the node. Real attackers have their own, so the node gets priority.
const NICE = 10

/** A child process of the harness. It gets its configuration in one message and reports by messages. */
export interface Helper {
  readonly child: ChildProcess
  /** Returns the next message of a type. Rejects if the process ends first. */
  receive<Message> (type: string): Promise<Message>
  send (message: object): void
  kill (): void
}

const helpers = new Set<Helper>()

/** Starts a file of this folder in its own process. */
export function startHelper (file: string, { nice = true } = {}): Helper {
  const script = fileURLToPath(new URL(file, import.meta.url))
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  if (nice) setPriority(child.pid!, NICE)
  const early = new Map<string, unknown[]>()
  const waiting = new Map<string, PromiseWithResolvers<unknown>>()

  child.on('message', (message: { type: string }) => {
    const waits = waiting.get(message.type)
    waiting.delete(message.type)
    if (waits) waits.resolve(message)
    else early.set(message.type, [...early.get(message.type) ?? [], message])
  })
  child.once('exit', (code, signal) => {
    helpers.delete(helper)
    for (const { reject } of waiting.values()) reject(new Error(`${file} ended with ${code ?? signal}`))
  })

  const helper: Helper = {
    child,
    async receive<Message> (type: string) {
      const known = early.get(type)?.shift()
      if (known !== undefined) return known as Message
      if (child.exitCode !== null) throw new Error(`${file} has ended with ${child.exitCode}`)
      const waits = Promise.withResolvers<unknown>()
      waiting.set(type, waits)
      return waits.promise as Promise<Message>
    },
    send: (message) => void child.send(message),
    kill: () => void child.kill('SIGKILL'),
  }
  helpers.add(helper)
  return helper
}

/** Ends all processes that `startHelper` started. */
export function killHelpers (): void {
  for (const helper of helpers) helper.kill()
}

/** For a child process: returns its configuration. The process ends when its parent ends. */
export async function readConfiguration<Configuration> (): Promise<Configuration> {
  process.once('disconnect', () => process.exit())
  // The terminal sends Ctrl-C to every process. The main process ends its children in order.
  process.on('SIGINT', () => {})
  return new Promise((resolve) => process.once('message', (message) => resolve(message as Configuration)))
}

/** For a child process: sends a message to the main process. */
export function report (message: { type: string, [member: string]: unknown }): void {
  process.send!(message)
}
