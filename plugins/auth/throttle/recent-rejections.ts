import { TooManyRequests } from '../../../schema/http/errors.ts'

// After this many rejections, attempts are rejected from memory until the limit has room again, for this long at most.
const FLOOD = 20
const REJECTED_MS = 5000

/** Remembers rejected attempts: in a flood on the same subject, the node rejects from memory for a while, without a statement. */
export function createRecentRejections () {
  const rejected = new Map<string, { times: number, retryAfter: number, until: number }>()

  return {
    /** Throws `TooManyRequests` if attempts on this subject were just rejected many times. */
    throwIfRejected (...subject: string[]): void {
      const key = subject.join(' ')
      const known = rejected.get(key)
      if (!known || known.times < FLOOD) return
      if (performance.now() < known.until) throw new TooManyRequests(known.retryAfter)
      rejected.delete(key)
    },

    record ({ retryAfter }: TooManyRequests, ...subject: string[]): void {
      const key = subject.join(' ')
      const times = (rejected.get(key)?.times ?? 0) + 1
      rejected.set(key, { times, retryAfter, until: performance.now() + Math.min(REJECTED_MS, retryAfter * 1000) })
    },

    clear: () => rejected.clear(),
  }
}
