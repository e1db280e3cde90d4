import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { DatabaseUnavailable, Overloaded } from '../schema/errors.ts'

// How many tasks may wait for the database, how many attempts each has, and the time between two attempts.
const TASKS = 10_000
const TRIES = 60
const RETRY_MS = 1000

/**
 * Returns a function that runs a task in the background. While the database is unavailable, the task is repeated every second
 * for at most a minute. A task that fails for good is logged. If 10,000 others are waiting, the task is dropped, and the first
 * such task is logged.
 */
export function createRetries (app: FastifyInstance): (task: () => Promise<void>) => void {
  const closing = new AbortController()
  let waiting = 0
  let dropping = false
  app.addHook('onClose', async () => closing.abort())

  async function retry (task: () => Promise<void>): Promise<void> {
    waiting++
    let err: Error | undefined
    for (let tries = 0; tries < TRIES && !closing.signal.aborted; tries++) {
      err = await task().then(() => undefined, (error: Error) => error)
      if (!(err instanceof DatabaseUnavailable || err instanceof Overloaded)) break
      await delay(RETRY_MS, undefined, { ref: false, signal: closing.signal }).catch(() => {})
    }
    waiting--
    dropping = false
    if (err) app.log.error({ err }, 'A background task failed')
  }

  return (task) => {
    if (waiting < TASKS) return void retry(task)
    if (!dropping) app.log.error({ waiting }, 'Background tasks are dropped, because too many wait for the database')
    dropping = true
  }
}
