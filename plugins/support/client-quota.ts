import type { UsherError } from '../../schema/http/errors.ts'
import { Overloaded } from '../../schema/http/errors.ts'
import { limitOf, type Network } from '../../schema/http/network.ts'

/** The limits of a `ClientQuota`. */
export interface ClientQuotaOptions {
  /** Different items that a network may use; a wider one may use more (`limitOf`). */
  perNetwork: number
  /** Different items that all networks together may use. */
  total: number
  /** Different items that all clients without a session or an API key may use together; by default `total`. */
  ofStrangers?: number
  /** The error for a network that exceeds its own limit. */
  Exceeded: new () => UsherError
}

/** Limits how many different items each network may use. Equal items count once per network, and once in total. */
export class ClientQuota {
  readonly #options: ClientQuotaOptions
  readonly #networks = new Map<string, Map<unknown, number>>()
  readonly #total = new Map<unknown, number>()
  readonly #strangers = new Map<unknown, number>()

  constructor (options: ClientQuotaOptions) {
    this.#options = options
  }

  /**
   * Takes an item for the networks of a client. Returns a function that releases it. Throws `Exceeded` if one of them
   * exceeds its limit, or `Overloaded` if all networks together exceed theirs.
   * @param isKnown whether the client is a user with a session or an API key
   */
  take (networks: readonly Network[], item: unknown = Symbol('item'), { isKnown = false } = {}): () => void {
    const { perNetwork, total, ofStrangers = total, Exceeded } = this.#options
    for (const network of networks) {
      const items = this.#networks.get(network.name)
      if (items && !items.has(item) && items.size >= limitOf(network, perNetwork, total)) throw new Exceeded()
    }
    const isFull = this.#total.size >= total || (!isKnown && this.#strangers.size >= ofStrangers)
    if (!this.#total.has(item) && isFull) throw new Overloaded()
    const totals = isKnown ? [this.#total] : [this.#total, this.#strangers]
    for (const counts of totals) add(counts, item)
    for (const { name } of networks) {
      const items = this.#networks.get(name) ?? new Map<unknown, number>()
      this.#networks.set(name, items)
      add(items, item)
    }
    return () => {
      for (const counts of totals) remove(counts, item)
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
