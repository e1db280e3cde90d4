import { Overloaded } from '../../schema/errors.ts'
import { ResponseTooLarge } from '../../schema/graphql-limits.ts'
import { ByteBudget } from './live/quotas.ts'

// Responses of at most this many bytes are not counted in the total.
const SMALL = 64 * 1024

/** The bytes that an operation has read so far. */
export interface ResultSize {
  /** Bytes of texts in the response so far. A text that the response repeats counts each time. */
  bytes: number
  /** Bytes that are reserved for the operation in the budget of the node. */
  reserved: number
}

/** Limits the bytes of each response, and of all large responses together that are being read or sent. */
export class ResultBudget {
  readonly maxBytes: number
  readonly #small: number
  readonly #total: ByteBudget

  constructor ({ maxResponseBytes, bufferedBytes }: { maxResponseBytes: number, bufferedBytes: number }) {
    this.maxBytes = maxResponseBytes
    this.#small = Math.min(SMALL, maxResponseBytes)
    this.#total = new ByteBudget(bufferedBytes)
  }

  /**
   * Counts bytes that have been read for a response. Throws `ResponseTooLarge` if the response exceeds its limit, or `Overloaded` if
   * all large responses together do.
   */
  add (size: ResultSize, bytes: number): void {
    size.bytes += bytes
    if (size.bytes > this.#small) this.#reserve(size)
  }

  /** Releases the bytes that are reserved for a response. */
  release (size: ResultSize): void {
    this.#total.give(size.reserved)
    size.reserved = 0
  }

  #reserve (size: ResultSize): void {
    if (size.bytes > this.maxBytes) throw new ResponseTooLarge(this.maxBytes)
    if (!this.#total.tryTake(size.bytes - size.reserved)) throw new Overloaded()
    size.reserved = size.bytes
  }
}
