import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A process that runs clients, such as subscribers. */
export interface Client<Told> {
  /** Resolves with the results, which the process sends once. */
  told: Promise<Told>
  stop (): Promise<void>
}

/**
 * Starts a script of this folder in its own process. It runs until it is stopped or ends by itself. `begun` is called
 * when the script reports that its measurement begins.
 */
export function startClient<Told> (name: string, given: object, begun = () => {}): Client<Told> {
  const child = fork(fileURLToPath(new URL(`${name}.ts`, import.meta.url)), [JSON.stringify(given)], { execArgv: [] })
  const { promise, resolve, reject } = Promise.withResolvers<Told>()
  child.on('message', ({ told }: { told?: Told }) => {
    if (told) resolve(told)
    else begun()
  })
  const exit = once(child, 'exit')
    .then(() => reject(new Error(`${name}.ts ended without a result; its output above says why`)))
  return {
    told: promise,
    async stop () {
      if (isRunning(child)) child.kill()
      await exit
    },
  }
}

/** Runs a script of this folder and returns its results. */
export async function ask<Told> (name: string, given: object, begun?: () => void): Promise<Told> {
  const client = startClient<Told>(name, given, begun)
  try {
    return await client.told
  } finally {
    await client.stop()
  }
}

const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null
