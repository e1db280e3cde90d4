import { Overloaded, ResponseTooLarge } from '../../schema/errors.ts'
import { ByteBudget } from './live/quotas.ts'

// Responses up to this size are not counted together.
const SMALL = 64 * 1024

/** What an operation has read so far. */
export interface ResultSize {
  /** Bytes of the texts that the response repeats, so far. */
  bytes: number
  /** How many of them the budget of the node holds for it. */
  reserved: number
}

/** Bounds the bytes of a response, and those of all large responses that are being read or sent. */
export class ResultBudget {
  readonly maxBytes: number
  readonly #small: number
  readonly #total: ByteBudget

  constructor ({ maxResponseBytes, bufferedBytes }: { maxResponseBytes: number, bufferedBytes: number }) {
    this.maxBytes = maxResponseBytes
    this.#small = Math.min(SMALL, maxResponseBytes)
    this.#total = new ByteBudget(bufferedBytes)
  }

  /** Counts bytes that have been read for a response. Throws `ResponseTooLarge` or `Overloaded`. */
  add (size: ResultSize, bytes: number): void {
    size.bytes += bytes
    if (size.bytes > this.#small) this.#reserve(size)
  }

  /** Frees the bytes of a response that has been sent. */
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
