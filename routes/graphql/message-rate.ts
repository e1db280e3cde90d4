/** How many messages a client may send: so many at once, and so many a minute in the long run. */
export interface MessageRateOptions { burst: number, perMinute: number }

// What one read from the network brings cannot be held back, and a read may bring thousands of small messages. Beyond
// this many bursts the client does not stop while it is slowed down.
const BURSTS_IN_DEBT = 4

/** A token bucket that may go into debt, because a message that has arrived cannot be refused. */
export class MessageRate {
  readonly #burst: number
  readonly #perMs: number
  #tokens: number
  #since = performance.now()

  constructor ({ burst, perMinute }: MessageRateOptions) {
    this.#burst = this.#tokens = burst
    this.#perMs = perMinute / 60_000
  }

  /** Counts a message. Returns for how many milliseconds to read no more: 0 within the limit, and `Infinity` far beyond it. */
  count (): number {
    const now = performance.now()
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#since) * this.#perMs) - 1
    this.#since = now
    if (this.#tokens >= 0) return 0
    return this.#tokens < -BURSTS_IN_DEBT * this.#burst ? Infinity : -this.#tokens / this.#perMs
  }
}
