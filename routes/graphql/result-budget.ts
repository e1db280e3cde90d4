import { Overloaded } from '../../schema/errors.ts'
import { ResponseTooLarge } from '../../schema/graphql-limits.ts'
import { networkOf } from '../../schema/network.ts'
import { ByteBudget } from './live/quotas.ts'

// Responses of at most this many bytes are not counted in the total.
const SMALL = 64 * 1024
// A network may take this share of the total. Its clients can keep what they have taken for as long as they like, by reading slowly.
const NETWORK_SHARE = 1 / 4

/** The bytes that an operation has read so far. */
export interface ResultSize {
  /** Bytes of texts in the response so far. A text that the response repeats counts each time. */
  bytes: number
  /** Bytes that are reserved for the operation in the budget of the node. */
  reserved: number
  /** The request of the operation, which has a network. An event of a subscription has none. */
  readonly request?: { readonly ip: string }
}

/** Limits the bytes of each response, and of all large responses that are being read or sent, for each network and together. */
export class ResultBudget {
  readonly maxBytes: number
  readonly #small: number
  readonly #total: ByteBudget
  readonly #share: number
  readonly #networks = new Map<string, number>()

  constructor ({ maxResponseBytes, bufferedBytes }: { maxResponseBytes: number, bufferedBytes: number }) {
    this.maxBytes = maxResponseBytes
    this.#small = Math.min(SMALL, maxResponseBytes)
    this.#total = new ByteBudget(bufferedBytes)
    this.#share = Math.max(maxResponseBytes, NETWORK_SHARE * bufferedBytes)
  }

  /**
   * Counts bytes that have been read for a response. Throws `ResponseTooLarge` if the response exceeds its limit, or `Overloaded` if
   * all large responses of its network, or of all networks together, do.
   */
  add (size: ResultSize, bytes: number): void {
    size.bytes += bytes
    if (size.bytes > this.#small) this.#reserve(size)
  }

  /** Releases the bytes that are reserved for a response. */
  release (size: ResultSize): void {
    if (size.reserved === 0) return
    this.#total.give(size.reserved)
    if (size.request) this.#add(networkOf(size.request.ip), -size.reserved)
    size.reserved = 0
  }

  #reserve (size: ResultSize): void {
    if (size.bytes > this.maxBytes) throw new ResponseTooLarge(this.maxBytes)
    const more = size.bytes - size.reserved
    const network = size.request && networkOf(size.request.ip)
    if (network !== undefined && this.#takenBy(network) + more > this.#share) throw new Overloaded()
    if (!this.#total.tryTake(more)) throw new Overloaded()
    if (network !== undefined) this.#add(network, more)
    size.reserved = size.bytes
  }

  #takenBy (network: string): number {
    return this.#networks.get(network) ?? 0
  }

  #add (network: string, bytes: number): void {
    const taken = this.#takenBy(network) + bytes
    if (taken > 0) this.#networks.set(network, taken)
    else this.#networks.delete(network)
  }
}
