import type { MetricLabels, UsherMetric } from '../../schema/options/metrics.ts'
import { Histogram } from './histogram.ts'

/** A number that only grows. With a label, there is one for each of its values. */
export interface Counter {
  add (count?: number, value?: string): void
}

/** What a gauge reads: a number, one for each value of its label, or undefined if the value is not known. */
export type Reading = number | ReadonlyMap<string, number> | undefined

// A label with more values than this is a mistake, and costs memory in every program that stores metrics.
const VALUES = 100
const OTHER = 'other'

export interface Options {
  /** The name of the label. A metric has at most one, whose values are few and never come from clients. */
  label?: string
  combine?: UsherMetric['combine']
}

export type Metrics = ReturnType<typeof createMetrics>

/**
 * Creates the measurements of a mount. Each component adds its own where it keeps the numbers. Counting is an addition,
 * and gauges are read only when somebody asks, so that measurements that nobody reads cost nothing that could be
 * measured.
 */
export function createMetrics () {
  const reads = new Map<string, () => UsherMetric>()
  const refreshers = new Set<() => Promise<void>>()

  function add (name: string, read: () => UsherMetric): void {
    if (reads.has(name)) throw new Error(`There are two metrics named ${name}`)
    reads.set(name, read)
  }

  return {
    /**
     * @param options its `values` are those of the label that are known in advance. They begin at 0, so that the first
     * increase is visible
     */
    counter (name: string, help: string, { label, values = label === undefined ? [''] : [], combine = 'sum' }: Options &
      { values?: readonly string[] } = {}): Counter {
      const counts = new Map(values.map((value) => [value, 0]))
      add(name, () => ({ name, help, combine, type: 'counter', samples: samplesOf(label, counts) }))
      return {
        add (count = 1, value = '') {
          const key = counts.has(value) || counts.size < VALUES ? value : OTHER
          counts.set(key, (counts.get(key) ?? 0) + count)
        },
      }
    },

    /** Adds a gauge, which is read whenever the metrics are. */
    gauge (name: string, help: string, read: () => Reading, { label, combine = 'sum' }: Options = {}): void {
      add(name, () => ({ name, help, combine, type: 'gauge', samples: samplesOf(label, read()) }))
    },

    /** Adds a counter of something that is counted anyway. */
    count (name: string, help: string, read: () => Reading, { label, combine = 'sum' }: Options = {}): void {
      add(name, () => ({ name, help, combine, type: 'counter', samples: samplesOf(label, read()) }))
    },

    /** Adds a histogram. Returns a function that returns the one for a value of its label. */
    histogram (
      name: string, help: string, bounds: readonly number[], { label, combine = 'sum' }: Options = {}
    ): (value?: string) => Histogram {
      const histograms = new Map<string, Histogram>()
      const samples = () => [...histograms].map(([value, histogram]) => histogram.read(labelsOf(label, value)))
      add(name, () => ({ name, help, combine, type: 'histogram', samples: samples() }))
      return (value = '') => {
        const histogram = histograms.get(value) ?? new Histogram(bounds)
        histograms.set(value, histogram)
        return histogram
      }
    },

    /**
     * Adds a function that brings the numbers behind some gauges up to date. It never rejects, and must resolve in
     * bounded time.
     */
    beforeRead (refresh: () => Promise<void>): void {
      refreshers.add(refresh)
    },

    /** Returns all metrics with their present values. */
    async read (): Promise<UsherMetric[]> {
      await Promise.all([...refreshers].map((refresh) => refresh()))
      return [...reads.values()].map((read) => read())
    },
  }
}

function samplesOf (label: string | undefined, reading: Reading): { labels: MetricLabels, value: number }[] {
  if (reading === undefined) return []
  if (typeof reading === 'number') return [{ labels: {}, value: reading }]
  return [...reading].map(([value, number]) => ({ labels: labelsOf(label, value), value: number }))
}

const labelsOf = (label: string | undefined, value: string): MetricLabels =>
  label === undefined ? {} : { [label]: value }
