import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A process of subscribers. */
export interface Client<Told> {
  /** What it has found, said once. */
  told: Promise<Told>
  stop (): Promise<void>
}

/**
 * Starts a script of this folder, which stays until it is stopped or ends by itself.
 *
 * @param begun called when it says that what is to be measured begins
 */
export function startClient<Told> (name: string, given: object, begun = () => {}): Client<Told> {
  const child = fork(fileURLToPath(new URL(`${name}.ts`, import.meta.url)), [JSON.stringify(given)], { execArgv: [] })
  const { promise, resolve, reject } = Promise.withResolvers<Told>()
  child.on('message', ({ told }: { told?: Told }) => {
    if (told) resolve(told)
    else begun()
  })
  const exit = once(child, 'exit').then(() => reject(new Error(`${name} has failed`)))
  return {
    told: promise,
    async stop () {
      if (isRunning(child)) child.kill()
      await exit
    },
  }
}

/** What a client finds. */
export async function ask<Told> (name: string, given: object, begun?: () => void): Promise<Told> {
  const client = startClient<Told>(name, given, begun)
  try {
    return await client.told
  } finally {
    await client.stop()
  }
}

const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null
