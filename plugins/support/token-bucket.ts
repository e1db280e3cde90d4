import { TooManyRequests } from '../../schema/http/errors.ts'

// Beyond this many keys, the one that was used longest ago is forgotten. So somebody with that many can exceed a limit.
const MAX_KEYS = 10_000

export interface TokenBucketOptions {
  /** The most tokens that the bucket can hold. */
  burst: number
  /** Tokens that are added in a minute. */
  perMinute: number
  /** The clock, in milliseconds. */
  now?: () => number
}

/**
 * A token bucket that may go into debt. More tokens than remain can be taken, for messages that have already arrived or
 * work that is larger than the bucket.
 */
export class TokenBucket {
  readonly #burst: number
  readonly #perMs: number
  readonly #now: () => number
  #tokens: number
  #since: number

  constructor ({ burst, perMinute, now = () => performance.now() }: TokenBucketOptions) {
    this.#burst = this.#tokens = burst
    this.#perMs = perMinute / 60_000
    this.#now = now
    this.#since = now()
  }

  /** The remaining tokens. The number is negative if more tokens were taken than there were. */
  get remaining (): number {
    const now = this.#now()
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#since) * this.#perMs)
    this.#since = now
    return this.#tokens
  }

  /** Takes tokens. Returns the number of remaining tokens, which may be negative. */
  take (count: number): number {
    this.#tokens = this.remaining - count
    return this.#tokens
  }

  /** Returns the milliseconds until `count` tokens have been added. */
  millisecondsFor (count: number): number {
    return count / this.#perMs
  }
}

/** A token bucket for each of many keys. */
export class TokenBuckets {
  readonly #options: TokenBucketOptions
  // The most recently used one is the last. A key without a bucket has all its tokens.
  readonly #buckets = new Map<string, TokenBucket>()

  constructor (options: TokenBucketOptions) {
    this.#options = options
  }

  /** Returns the bucket of a key, to take tokens from it. A new bucket is full. */
  of (key: string, options = this.#options): TokenBucket {
    const bucket = this.#buckets.get(key) ?? new TokenBucket(options)
    this.#buckets.delete(key)
    this.#buckets.set(key, bucket)
    if (this.#buckets.size > MAX_KEYS) this.#buckets.delete(this.#buckets.keys().next().value!)
    return bucket
  }

  /** Throws `TooManyRequests` if a key has no tokens left. */
  require (key: string): void {
    const bucket = this.#buckets.get(key)
    if (bucket && bucket.remaining <= 0) throw new TooManyRequests(bucket.millisecondsFor(1 - bucket.remaining) / 1000)
  }
}
