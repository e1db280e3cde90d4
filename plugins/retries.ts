import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { DatabaseUnavailable, Overloaded } from '../schema/errors.ts'

// How many tasks may wait for the database, how many attempts each has, and the time between two attempts.
const TASKS = 10_000
const TRIES = 60
const RETRY_MS = 1000

/**
 * Returns a function that runs a task in the background. While the database is unavailable, the task is repeated every second
 * for at most a minute. Any other failure is logged. A task is dropped if 10,000 others are waiting.
 */
export function createRetries (app: FastifyInstance): (task: () => Promise<void>) => void {
  const closing = new AbortController()
  let waiting = 0
  app.addHook('onClose', async () => closing.abort())

  async function retry (task: () => Promise<void>): Promise<void> {
    waiting++
    for (let tries = 0; tries < TRIES && !closing.signal.aborted; tries++) {
      const failure = await task().then(() => undefined, (error: Error) => error)
      if (!failure) break
      if (!(failure instanceof DatabaseUnavailable || failure instanceof Overloaded)) {
        app.log.error({ err: failure }, 'A background task failed')
        break
      }
      await delay(RETRY_MS, undefined, { ref: false, signal: closing.signal }).catch(() => {})
    }
    waiting--
  }

  return (task) => {
    if (waiting < TASKS) void retry(task)
  }
}
