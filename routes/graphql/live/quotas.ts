import type { UsherError } from '../../../schema/http/errors.ts'
import { Overloaded } from '../../../schema/http/errors.ts'
import { limitOf, type Network } from '../../../schema/http/network.ts'

/** The `Retry-After` of a rejected socket or event stream. */
export const RETRY_AFTER_SECONDS = 5

/** The limits of a `Quota`. */
export interface QuotaOptions {
  /** Different items that a network may use; a wider one may use more (`limitOf`). */
  perNetwork: number
  /** Different items that all networks together may use. */
  total: number
  /** The error for a network that exceeds its own limit. */
  Exceeded: new () => UsherError
}

/** Limits how many different items each network may use. Equal items count once per network, and once in total. */
export class Quota {
  readonly #options: QuotaOptions
  readonly #networks = new Map<string, Map<unknown, number>>()
  readonly #total = new Map<unknown, number>()

  constructor (options: QuotaOptions) {
    this.#options = options
  }

  /**
   * Takes an item for the networks of a client. Returns a function that releases it. Throws `Exceeded` if one of them exceeds its limit,
   * or `Overloaded` if all networks together exceed theirs.
   */
  take (networks: readonly Network[], item: unknown = Symbol('item')): () => void {
    const { perNetwork, total, Exceeded } = this.#options
    for (const network of networks) {
      const items = this.#networks.get(network.name)
      if (items && !items.has(item) && items.size >= limitOf(network, perNetwork, total)) throw new Exceeded()
    }
    if (!this.#total.has(item) && this.#total.size >= total) throw new Overloaded()
    add(this.#total, item)
    for (const { name } of networks) {
      const items = this.#networks.get(name) ?? new Map<unknown, number>()
      this.#networks.set(name, items)
      add(items, item)
    }
    return () => {
      remove(this.#total, item)
      for (const { name } of networks) {
        const items = this.#networks.get(name)!
        remove(items, item)
        if (items.size === 0) this.#networks.delete(name)
      }
    }
  }
}

function add (counts: Map<unknown, number>, item: unknown): void {
  counts.set(item, (counts.get(item) ?? 0) + 1)
}

function remove (counts: Map<unknown, number>, item: unknown): void {
  const rest = counts.get(item)! - 1
  if (rest > 0) counts.set(item, rest)
  else counts.delete(item)
}

// Connections with fewer unread bytes are not counted, which saves work. Twenty thousand of them have 320 MB at most.
const SMALL_BYTES = 16 * 1024

/** A connection whose client may not have read everything that was written to it. */
export interface Reader {
  /** Bytes that were written and not read yet. */
  readonly unread: number
  /** Closes the connection at once and discards the unread bytes. */
  disconnect (): void
}

/** Limits the unread bytes of all clients together. Above the limit, clients with the most unread bytes are disconnected first. */
export class UnreadBytes {
  readonly #limit: number
  readonly #known = new Map<Reader, number>()
  #sum = 0

  constructor (limit: number) {
    this.#limit = limit
  }

  /** An upper bound of the unread bytes of all readers with many of them. */
  get sum (): number { return this.#sum }

  /** Updates the unread bytes of a reader. Must be called after each write to it. */
  update (reader: Reader): void {
    const { unread } = reader
    const before = this.#known.get(reader) ?? 0
    if (unread <= SMALL_BYTES && before === 0) return
    this.#known.set(reader, unread)
    this.#sum += unread - before
    if (this.#sum > this.#limit) this.#relieve()
  }

  /** Stops counting a reader. Must be called when its connection has closed. */
  forget (reader: Reader): void {
    this.#sum -= this.#known.get(reader) ?? 0
    this.#known.delete(reader)
  }

  // No event signals what clients have read since the last write, so the sum is only an upper bound until all readers are checked.
  // Freeing more than necessary makes these checks rare.
  #relieve (): void {
    const readers = [...this.#known.keys()].map((reader) => ({ reader, unread: reader.unread })).sort((a, b) => a.unread - b.unread)
    this.#known.clear()
    this.#sum = 0
    for (const { reader, unread } of readers) {
      if (this.#sum + unread > this.#limit * 0.75) {
        reader.disconnect()
      } else if (unread > 0) {
        this.#known.set(reader, unread)
        this.#sum += unread
      }
    }
  }
}

/** A number of bytes that many users share, first come, first served. */
export class ByteBudget {
  readonly #limit: number
  #taken = 0

  constructor (limit: number) {
    this.#limit = limit
  }

  /** Takes bytes if that many remain. Returns whether it has taken them. */
  tryTake (bytes: number): boolean {
    if (this.#taken + bytes > this.#limit) return false
    this.#taken += bytes
    return true
  }

  /** Gives bytes back. */
  give (bytes: number): void {
    this.#taken -= bytes
  }
}
