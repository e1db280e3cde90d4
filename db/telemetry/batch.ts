import type { Histogram } from './histogram.ts'
import type { Tracing } from './tracing.ts'

/** What is measured of the batches with one name. */
export class BatchTelemetry {
  readonly name: string
  readonly tracing: Tracing | undefined
  readonly #items: Histogram
  readonly #waited: Histogram
  readonly #waiting: (() => number)[] = []
  /** The number of items that were rejected because too many waited, or they had waited for too long. */
  rejected = 0

  constructor (name: string, tracing: Tracing | undefined, items: Histogram, waited: Histogram) {
    this.name = name
    this.tracing = tracing
    this.#items = items
    this.#waited = waited
  }

  /** Counts a batch that is sent. `since` is when its oldest item was added. */
  sent (items: number, since: number): void {
    this.#items.observe(items)
    this.#waited.observe((performance.now() - since) / 1000)
  }

  /** Adds a function that returns the length of a queue. */
  addQueue (length: () => number): void {
    this.#waiting.push(length)
  }

  /** The number of items that were sent. */
  get total (): number {
    return this.#items.sum
  }

  get waiting (): number {
    return this.#waiting.reduce((sum, length) => sum + length(), 0)
  }
}
