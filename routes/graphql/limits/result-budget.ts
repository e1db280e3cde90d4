import { Overloaded } from '../../../schema/http/errors.ts'
import { ResponseTooLarge } from '../../../schema/graphql/limits.ts'
import { clientNetworksOf } from '../../../plugins/http/client-info.ts'
import type { Network } from '../../../schema/http/network.ts'
import { BytePool } from './byte-pool.ts'

// Responses of at most this many bytes are not counted in the total.
const SMALL = 64 * 1024
// A network, wide or narrow, may take this share of the total. Its clients can keep what they have taken for as long as
// they like, by reading slowly.
const NETWORK_SHARE = 1 / 4

/** The bytes that an operation has read so far. */
export interface ResultSize {
  /** Bytes of texts in the response so far. A text that the response repeats counts each time. */
  bytes: number
  /** Bytes that are reserved for the operation in the budget of the node. */
  reserved: number
  /** The request of the operation, which has a network. An event of a subscription has none. */
  readonly request?: { readonly ip: string }
  /** The networks for which they are reserved. */
  networks?: readonly Network[]
}

/**
 * Limits the bytes of each response, and of all large responses that are being read or sent, for each network and
 * together.
 */
export class ResultBudget {
  readonly maxBytes: number
  readonly #small: number
  readonly #total: BytePool
  readonly #share: number
  readonly #networks = new Map<string, number>()

  constructor ({ maxResponseBytes, bufferedBytes }: { maxResponseBytes: number, bufferedBytes: number }) {
    this.maxBytes = maxResponseBytes
    this.#small = Math.min(SMALL, maxResponseBytes)
    this.#total = new BytePool(bufferedBytes)
    this.#share = Math.max(maxResponseBytes, NETWORK_SHARE * bufferedBytes)
  }

  /** The bytes of all large responses that are being read or sent. */
  get taken (): number { return this.#total.taken }

  /**
   * Counts bytes that have been read for a response. Throws `ResponseTooLarge` if the response exceeds its limit, or
   * `Overloaded` if all large responses of its network, or of all networks together, do.
   */
  add (size: ResultSize, bytes: number): void {
    size.bytes += bytes
    if (size.bytes > this.#small) this.#reserve(size)
  }

  /** Releases the bytes that are reserved for a response. */
  release (size: ResultSize): void {
    if (size.reserved === 0) return
    this.#total.give(size.reserved)
    for (const network of size.networks ?? []) this.#add(network, -size.reserved)
    size.reserved = 0
  }

  #reserve (size: ResultSize): void {
    if (size.bytes > this.maxBytes) throw new ResponseTooLarge(this.maxBytes)
    const more = size.bytes - size.reserved
    // Once, because the client may have disconnected when they are released, and has no address then.
    size.networks ??= size.request ? clientNetworksOf(size.request) : []
    if (size.networks.some((network) => this.#takenBy(network) + more > this.#share)) throw new Overloaded()
    if (!this.#total.tryTake(more)) throw new Overloaded()
    for (const network of size.networks) this.#add(network, more)
    size.reserved = size.bytes
  }

  #takenBy ({ name }: Network): number {
    return this.#networks.get(name) ?? 0
  }

  #add (network: Network, bytes: number): void {
    const taken = this.#takenBy(network) + bytes
    if (taken > 0) this.#networks.set(network.name, taken)
    else this.#networks.delete(network.name)
  }
}
