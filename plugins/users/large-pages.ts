import { setTimeout as delay } from 'node:timers/promises'
import { EventLoopLoad } from '../telemetry/event-loop-load.ts'

/**
 * The number of users above which a page is large. A page of 1,000 costs the node as much as hundreds of reads by id.
 */
export const LARGE_PAGE = 100

// The time between the starts of two large pages on a node without any idle time. On an idle node there is none.
const PAUSE_MS = 100
// If there is less other work, large pages may use the whole node.
const OTHERS_A_SECOND = 100
// The time over which other work is counted.
const COUNT_MS = 100

interface PacingOptions {
  load?: Pick<EventLoopLoad, 'utilization'>
  /** Milliseconds over which other work is counted. */
  countFor?: number
}

/**
 * Returns a function that resolves when the next large page may be read. While the node also serves other requests, the
 * time between two of them grows with its load, so that the others do not wait behind many.
 * @param countOthers returns a number that grows by one with each other read or write
 */
export function createPacing (
  countOthers: () => number, { load = new EventLoopLoad(), countFor = COUNT_MS }: PacingOptions = {}
): () => Promise<void> {
  let previous = Promise.resolve()
  let lastStart = -Infinity
  let [countedAt, counted, othersASecond] = [performance.now(), countOthers(), 0]

  function isShared (): boolean {
    const now = performance.now()
    if (now - countedAt > countFor) {
      const count = countOthers()
      othersASecond = (count - counted) / (now - countedAt) * 1000
      countedAt = now
      counted = count
    }
    return othersASecond >= OTHERS_A_SECOND
  }

  async function wait (): Promise<void> {
    const remaining = lastStart + PAUSE_MS * load.utilization - performance.now()
    if (isShared() && remaining > 0) await delay(remaining)
    lastStart = performance.now()
  }

  return () => (previous = previous.then(wait))
}
