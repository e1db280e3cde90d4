import { TooManyRequests } from '../http/errors.ts'

// The keys of budgets that are remembered. The oldest is forgotten, so somebody with that many accounts can exceed the limit.
const REMEMBERED = 10_000

/** Limits how many bytes something may store in a period, for each of many keys. What was used becomes free again evenly over the period. */
export class ByteBudget {
  readonly #limit: number
  readonly #periodMs: number
  readonly #now: () => number
  readonly #used = new Map<string, { bytes: number, at: number }>()

  constructor (limit: number, periodMs: number, now: () => number = () => performance.now()) {
    this.#limit = limit
    this.#periodMs = periodMs
    this.#now = now
  }

  /** Throws `TooManyRequests` if a key has used all of its bytes. */
  require (key: string): void {
    const excess = this.#usedBy(key) - this.#limit
    if (excess >= 0) throw new TooManyRequests((excess + 1) / this.#limit * this.#periodMs / 1000)
  }

  /** Counts bytes that were stored. */
  add (key: string, bytes: number): void {
    const used = this.#usedBy(key) + bytes
    this.#used.delete(key)
    this.#used.set(key, { bytes: used, at: this.#now() })
    if (this.#used.size > REMEMBERED) this.#used.delete(this.#used.keys().next().value!)
  }

  #usedBy (key: string): number {
    const known = this.#used.get(key)
    return known ? Math.max(0, known.bytes - (this.#now() - known.at) / this.#periodMs * this.#limit) : 0
  }
}
