/** So many tokens at once, and so many a minute in the long run. */
export interface TokenBucketOptions { burst: number, perMinute: number }

/** A token bucket that may go into debt: what has arrived already, or is larger than the bucket, is taken all the same. */
export class TokenBucket {
  readonly #burst: number
  readonly #perMs: number
  #tokens: number
  #since = performance.now()

  constructor ({ burst, perMinute }: TokenBucketOptions) {
    this.#burst = this.#tokens = burst
    this.#perMs = perMinute / 60_000
  }

  /** The number of tokens that are left now. It is negative after more were taken than there were. */
  get left (): number {
    const now = performance.now()
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#since) * this.#perMs)
    this.#since = now
    return this.#tokens
  }

  /** Takes tokens. Returns how many are left. */
  take (count: number): number {
    this.#tokens = this.left - count
    return this.#tokens
  }

  /** Returns the milliseconds in which so many tokens come back. */
  millisecondsFor (count: number): number {
    return count / this.#perMs
  }
}
