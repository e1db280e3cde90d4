import type { FastifyInstance } from 'fastify'

/** Rows that one statement deletes; what runs longer would keep others waiting. */
export const ROWS_A_PURGE = 1000

/**
 * Deletes what has had its time: as the app starts, and then again and again, at times of its own, so that nodes that
 * start together do not all come at once. It keeps no process alive, and ends with the app.
 *
 * Returns a function that has it purge now, for what is known to have just become old.
 *
 * @param seconds between two purges, about
 * @param purge deletes up to `ROWS_A_PURGE` rows: how many it has
 */
export function purgeRegularly (app: FastifyInstance, what: string, seconds: number, purge: () => Promise<number>): () => void {
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  const closing = new AbortController()

  async function run (): Promise<void> {
    clearTimeout(timer)
    try {
      while (!closing.signal.aborted && await purge() === ROWS_A_PURGE);
    } catch (err) {
      app.log.warn({ err }, `What is old of ${what} could not be deleted`)
    }
    if (!closing.signal.aborted) timer = setTimeout(start, seconds * 1000 * (0.5 + Math.random())).unref()
  }

  function start (): void {
    running = running.then(run)
  }

  app.addHook('onReady', async () => start())
  app.addHook('onClose', async () => {
    closing.abort()
    clearTimeout(timer)
    await running
  })
  return start
}
