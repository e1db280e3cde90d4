import { TokenBucket, type TokenBucketOptions } from '../token-bucket.ts'

/** How many messages a client may send. */
export type MessageRateOptions = TokenBucketOptions

// What one read from the network brings cannot be held back, and a read may bring thousands of small messages. Beyond
// this many bursts the client does not stop while it is slowed down.
const BURSTS_IN_DEBT = 4

/** The rate of a client's messages, each of which has arrived and so cannot be refused. */
export class MessageRate {
  readonly #bucket: TokenBucket
  readonly #largestDebt: number

  constructor (options: MessageRateOptions) {
    this.#bucket = new TokenBucket(options)
    this.#largestDebt = BURSTS_IN_DEBT * options.burst
  }

  /** Counts a message. Returns for how many milliseconds to read no more: 0 within the limit, and `Infinity` far beyond it. */
  count (): number {
    const debt = -this.#bucket.take(1)
    if (debt <= 0) return 0
    return debt > this.#largestDebt ? Infinity : this.#bucket.millisecondsFor(debt)
  }
}
