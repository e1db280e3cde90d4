import { setTimeout as delay } from 'node:timers/promises'
import { EventLoopLoad } from '../event-loop-load.ts'

/** The number of users above which a page is large. Reading and rendering a page of 1,000 costs as much as some hundred small requests. */
export const LARGE_PAGE = 100

// The time between the starts of two large pages on a node without any idle time. On an idle node there is none.
const PAUSE_MS = 100

/**
 * Returns a function that resolves when the next large page may be read. The busier the node is, the more time lies between two of them,
 * so that other requests do not wait behind many. One page must have been read before the next asks.
 */
export function createPacing (load: Pick<EventLoopLoad, 'utilization'> = new EventLoopLoad()): () => Promise<void> {
  let last = -Infinity
  return async () => {
    const remaining = last + PAUSE_MS * load.utilization - performance.now()
    if (remaining > 0) await delay(remaining)
    last = performance.now()
  }
}
