import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

// Tasks that wait for the database, how often each is tried, and how long to wait in between.
const TASKS = 10_000
const TRIES = 60
const RETRY_MS = 1000

/** Returns a function that does something in the background, again and again until it succeeds, for about a minute. */
export function createRetries (app: FastifyInstance): (task: () => Promise<void>) => void {
  const closing = new AbortController()
  let waiting = 0
  app.addHook('onClose', async () => closing.abort())

  async function retry (task: () => Promise<void>): Promise<void> {
    waiting++
    for (let tries = 0; tries < TRIES && !closing.signal.aborted; tries++) {
      const done = await task().then(() => true, () => false)
      if (done) break
      await delay(RETRY_MS, undefined, { ref: false, signal: closing.signal }).catch(() => {})
    }
    waiting--
  }

  return (task) => {
    if (waiting < TASKS) void retry(task)
  }
}
