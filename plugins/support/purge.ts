import { isConsequence } from '../../db/driver/circuit-breaker.ts'
import type { Lifecycle } from '../core.ts'

/** How many rows one statement deletes. A statement that runs longer would delay others. */
export const PURGE_BATCH_SIZE = 1000

/**
 * Deletes old rows when the app is ready, and then at random intervals, so that nodes that start together do not all
 * purge at the same time. Its timer does not keep the process alive, and it stops when the app closes.
 *
 * Returns a function that starts a purge at once, for rows that are known to have just become old.
 *
 * @param data names the rows in the log
 * @param seconds the average time between two purges
 * @param purge deletes up to `PURGE_BATCH_SIZE` rows and returns their number. If there were that many, it is called
 * again
 */
export function purgeRegularly (
  lifecycle: Lifecycle, data: string, seconds: number, purge: () => Promise<number>
): () => void {
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  const closing = new AbortController()

  async function run (): Promise<void> {
    clearTimeout(timer)
    try {
      while (!closing.signal.aborted && await purge() === PURGE_BATCH_SIZE);
    } catch (err) {
      lifecycle.log[isConsequence(err) ? 'debug' : 'warn']({ err, data }, 'Old data could not be deleted')
    }
    if (!closing.signal.aborted) timer = setTimeout(start, seconds * 1000 * (0.5 + Math.random())).unref()
  }

  function start (): void {
    running = running.then(run)
  }

  lifecycle.addHook('onReady', async () => start())
  lifecycle.addHook('onClose', async () => {
    closing.abort()
    clearTimeout(timer)
    await running
  })
  return start
}
