import { TokenBucket, type TokenBucketOptions } from '../../../plugins/support/token-bucket.ts'

/** The rate at which a client may send messages. */
export type MessageRateOptions = TokenBucketOptions

// Pausing the connection does not hold back messages that one read from the network has already brought, and a read may
// bring thousands of small ones. A client that is more than this many bursts over its limit keeps sending although it
// is slowed down.
const BURSTS_IN_DEBT = 4

/**
 * Measures the rate of a client's messages. They have already arrived, so they are counted even if they exceed the
 * limit.
 */
export class MessageRate {
  readonly #bucket: TokenBucket
  readonly #largestDebt: number

  constructor (options: MessageRateOptions) {
    this.#bucket = new TokenBucket(options)
    this.#largestDebt = BURSTS_IN_DEBT * options.burst
  }

  /**
   * Counts a message. Returns the milliseconds for which to pause reading: 0 within the limit, and `Infinity` if the
   * client exceeds it by far.
   */
  count (): number {
    const debt = -this.#bucket.take(1)
    if (debt <= 0) return 0
    return debt > this.#largestDebt ? Infinity : this.#bucket.millisecondsFor(debt)
  }
}
