import type { UsherError } from '../../../schema/errors.ts'
import { Overloaded } from '../../../schema/errors.ts'

/** A limit of different items, per network and of all networks together. */
export interface QuotaOptions {
  perNetwork: number
  total: number
  /** What a network over its own limit is rejected with. */
  Exceeded: new () => UsherError
}

/** Counts how many different items each network uses. Equal items count once per network, and once in total. */
export class Quota {
  readonly #options: QuotaOptions
  readonly #networks = new Map<string, Map<unknown, number>>()
  readonly #total = new Map<unknown, number>()

  constructor (options: QuotaOptions) {
    this.#options = options
  }

  /** Takes an item for a network, and returns how to give it back. Throws `Exceeded`, or `Overloaded` over the total. */
  take (network: string, item: unknown = Symbol('item')): () => void {
    const { perNetwork, total, Exceeded } = this.#options
    const items = this.#networks.get(network) ?? new Map<unknown, number>()
    if (!items.has(item) && items.size >= perNetwork) throw new Exceeded()
    if (!this.#total.has(item) && this.#total.size >= total) throw new Overloaded()
    this.#networks.set(network, items)
    add(items, item)
    add(this.#total, item)
    return () => {
      remove(items, item)
      remove(this.#total, item)
      if (items.size === 0) this.#networks.delete(network)
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

// A connection with less is not worth the bookkeeping: twenty thousand of them come to 320 MB at most.
const SMALL_BYTES = 16 * 1024

/** A connection to which data was written that its client may not have read. */
export interface Reader {
  readonly unread: number
  /** Closes the connection at once and discards what is unread. */
  disconnect (): void
}

/** Bounds how many bytes all clients together leave unread: whoever leaves the most is hung up on first. */
export class UnreadBytes {
  readonly #limit: number
  readonly #known = new Map<Reader, number>()
  #sum = 0

  constructor (limit: number) {
    this.#limit = limit
  }

  /** Takes note of what a reader has left unread by now. To be called after each write. */
  update (reader: Reader): void {
    const { unread } = reader
    const before = this.#known.get(reader) ?? 0
    if (unread <= SMALL_BYTES && before === 0) return
    this.#known.set(reader, unread)
    this.#sum += unread - before
    if (this.#sum > this.#limit) this.#relieve()
  }

  /** To be called when a reader has gone. */
  forget (reader: Reader): void {
    this.#sum -= this.#known.get(reader) ?? 0
    this.#known.delete(reader)
  }

  // Nobody tells what was read since the last write, so the sum is an upper bound until all are asked. Making more room
  // than necessary keeps that rare.
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

/** Bytes that are shared by whoever asks first. */
export class ByteBudget {
  readonly #limit: number
  #taken = 0

  constructor (limit: number) {
    this.#limit = limit
  }

  /** Returns whether there was room; if not, nothing is taken. */
  tryTake (bytes: number): boolean {
    if (this.#taken + bytes > this.#limit) return false
    this.#taken += bytes
    return true
  }

  give (bytes: number): void {
    this.#taken -= bytes
  }
}
