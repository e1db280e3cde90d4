import type { Lifecycle } from '../core.ts'
import { repeatRegularly } from './repeat.ts'

/** How many rows one statement deletes. A statement that runs longer would delay others. */
export const PURGE_BATCH_SIZE = 1000

/**
 * Deletes old rows when the app is ready, and then regularly, until it closes.
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
  return repeatRegularly(
    lifecycle, { seconds, failure: 'Old data could not be deleted', data: { data } },
    async () => await purge() === PURGE_BATCH_SIZE
  )
}
