/**
 * The names of a metric's label and its value, such as `{ batch: 'users.read' }`. The possible values are few and never
 * come from clients.
 */
export type MetricLabels = Readonly<Record<string, string>>

interface Described {
  /** As Prometheus names metrics: `usher_…`, in base units (seconds, bytes), with the suffix `_total` for counters. */
  readonly name: string
  readonly help: string
  /**
   * How the values of several processes of one node are combined. Most are added. What all of them read from the
   * database is the same, and the largest value is the latest one; a node is available only if all of its processes
   * are.
   */
  readonly combine: 'sum' | 'max' | 'min'
}

/** A counter, which only grows, or a gauge. */
export interface NumberMetric extends Described {
  readonly type: 'counter' | 'gauge'
  readonly samples: readonly { readonly labels: MetricLabels, readonly value: number }[]
}

/** How many values were observed, and how they are distributed. */
export interface HistogramMetric extends Described {
  readonly type: 'histogram'
  readonly samples: readonly HistogramSample[]
}

export interface HistogramSample {
  readonly labels: MetricLabels
  /** The number of values up to and including each bound. They accumulate: each count contains those before it. */
  readonly buckets: readonly { readonly bound: number, readonly count: number }[]
  readonly count: number
  readonly sum: number
}

/** A measurement of Usher (contract 14.2), in a form that is easily turned into that of any library. */
export type UsherMetric = NumberMetric | HistogramMetric
