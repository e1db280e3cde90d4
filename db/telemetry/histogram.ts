import type { HistogramSample, MetricLabels } from '../../schema/options/metrics.ts'

/** Counts values by size. Observing a value takes a few nanoseconds and no memory. */
export class Histogram {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0

  /** @param bounds the largest value of each bucket, ascending. Larger values are counted, too */
  constructor (bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe (value: number): void {
    let index = 0
    while (value > this.#bounds[index]!) index++
    this.#counts[index]!++
    this.#sum += value
  }

  /** The sum of all values. */
  get sum (): number { return this.#sum }

  read (labels: MetricLabels): HistogramSample {
    let count = 0
    const buckets = this.#bounds.map((bound, index) => {
      count += this.#counts[index]!
      return { bound, count }
    })
    return { labels, buckets, count: count + this.#counts.at(-1)!, sum: this.#sum }
  }
}

/** Bounds for durations in seconds. */
export const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const
