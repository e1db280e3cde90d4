import type { FastifyBaseLogger } from 'fastify'
import { Overloaded } from '../../schema/http/errors.ts'
import { networksOf } from '../../schema/http/network.ts'
import type { Lifecycle } from '../core.ts'
import { FairQueue } from './fair-queue.ts'

// Few at once, because each takes a connection for its transaction, and must not delay other statements.
const AT_ONCE = 2
const WAITING = 200

/** What the log says of a task that too many others keep from being run, and of one that has failed. */
export interface TaskFailures { full: string, failed: string }

/**
 * Creates a queue of what is left to do for requests after their responses. The networks of the clients take turns, the
 * widest ones first, so that a flood from one of them takes no places from others. Closing the app waits for what is in
 * the queue.
 *
 * @returns a function that adds a task for a client. It never throws: failures are logged
 */
export function createAfterResponse (lifecycle: Lifecycle, { full, failed }: TaskFailures) {
  const queue = new FairQueue({ concurrency: AT_ONCE, maxWaiting: WAITING })
  const waiting = new Set<Promise<void>>()
  lifecycle.addHook('onClose', async () => { await Promise.all(waiting) })

  return ({ address, log }: { address: string, log: FastifyBaseLogger }, task: () => Promise<void>): void => {
    const networks = networksOf(address)
    const done: Promise<void> = queue.run([networks.at(-1)!.name, networks[0]!.name], task)
      .catch((err) => {
        // This task may have had to give way to a later one.
        if (err instanceof Overloaded) log.error(full)
        else log.error({ err }, failed)
      })
      .finally(() => waiting.delete(done))
    waiting.add(done)
  }
}
