import type { TooManyRequests } from '../../schema/http/errors.ts'

// Beyond this many keys, the one that was rejected longest ago is forgotten. Its next attempt costs a statement.
const MAX_KEYS = 10_000

export interface RecentRejectionsOptions {
  /** The error that is thrown again. */
  Rejection: new (retryAfter: number) => TooManyRequests
  /** How many rejections of a key are recorded before the key is rejected without a statement. */
  after: number
  /** For how long at most, in milliseconds, unless the key may try again earlier. */
  maxMs: number
}

export type RecentRejections = ReturnType<typeof createRecentRejections>

/**
 * Remembers rejected attempts, so that somebody who does not stop is rejected for a while without a statement in the
 * database, which has the limits.
 */
export function createRecentRejections ({ Rejection, after, maxMs }: RecentRejectionsOptions) {
  const rejected = new Map<string, { times: number, retryAfter: number, until: number }>()

  return {
    /** Throws `Rejection` if attempts of this key were just rejected often enough. */
    throwIfRejected (key: string): void {
      const known = rejected.get(key)
      if (!known || known.times < after) return
      if (performance.now() < known.until) throw new Rejection(known.retryAfter)
      rejected.delete(key)
    },

    /** Records that an attempt was rejected. */
    record (key: string, { retryAfter }: TooManyRequests): void {
      const times = (rejected.get(key)?.times ?? 0) + 1
      rejected.delete(key)
      rejected.set(key, { times, retryAfter, until: performance.now() + Math.min(maxMs, retryAfter * 1000) })
      if (rejected.size > MAX_KEYS) rejected.delete(rejected.keys().next().value!)
    },

    /** Forgets the rejections whose time is over, so that no keys are kept after a flood. */
    forgetExpired (): void {
      const now = performance.now()
      for (const [key, { until }] of rejected) if (now >= until) rejected.delete(key)
    },

    clear: () => rejected.clear(),
  }
}
