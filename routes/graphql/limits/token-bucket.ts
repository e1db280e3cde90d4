export interface TokenBucketOptions {
  /** The most tokens that the bucket can hold. */
  burst: number
  /** Tokens that are added in a minute. */
  perMinute: number
}

/**
 * A token bucket that may go into debt. More tokens than remain can be taken, for messages that have already arrived or work that
 * is larger than the bucket.
 */
export class TokenBucket {
  readonly #burst: number
  readonly #perMs: number
  #tokens: number
  #since = performance.now()

  constructor ({ burst, perMinute }: TokenBucketOptions) {
    this.#burst = this.#tokens = burst
    this.#perMs = perMinute / 60_000
  }

  /** The remaining tokens. The number is negative if more tokens were taken than there were. */
  get remaining (): number {
    const now = performance.now()
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
