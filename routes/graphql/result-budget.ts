import { Overloaded, ResponseTooLarge } from '../../schema/errors.ts'

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
  readonly #total: number
  #reserved = 0

  constructor ({ maxResponseBytes, bufferedBytes }: { maxResponseBytes: number, bufferedBytes: number }) {
    this.maxBytes = maxResponseBytes
    this.#small = Math.min(SMALL, maxResponseBytes)
    this.#total = bufferedBytes
  }

  /** Counts bytes that have been read for a response. Throws `ResponseTooLarge` or `Overloaded`. */
  add (size: ResultSize, bytes: number): void {
    size.bytes += bytes
    if (size.bytes > this.#small) this.#reserve(size)
  }

  /** Frees the bytes of a response that has been sent. */
  release (size: ResultSize): void {
    this.#reserved -= size.reserved
    size.reserved = 0
  }

  #reserve (size: ResultSize): void {
    if (size.bytes > this.maxBytes) throw new ResponseTooLarge(this.maxBytes)
    const more = size.bytes - size.reserved
    if (this.#reserved + more > this.#total) throw new Overloaded()
    this.#reserved += more
    size.reserved = size.bytes
  }
}
