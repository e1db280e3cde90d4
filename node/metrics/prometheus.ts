import { collectDefaultMetrics, Registry } from '@prometheus-io/client'
import type { MetricLabels, UsherMetric } from '../../schema/options/metrics.ts'

/** A metric with its values, as the Prometheus client and a message between processes have it. */
export interface PrometheusMetric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** How the client combines the values of several processes. */
  readonly aggregator?: string
  readonly values: readonly { readonly metricName?: string, readonly labels: MetricLabels, readonly value: number }[]
}

export const CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

// Names that Prometheus' own linter rejects, and quantiles, which cannot be combined.
const OMITTED = [
  'nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_summary', 'nodejs_eventloop_utilization_histogram',
]

/**
 * Starts to measure the process: CPU, memory, the delay of the event loop. Returns a function that reads these metrics.
 */
export function measureProcess (): () => Promise<PrometheusMetric[]> {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of OMITTED) registry.removeSingleMetric(name)
  return async () => {
    const metrics = await registry.getMetricsAsJSON() as unknown as PrometheusMetric[]
    // The delay of the event loop is NaN right after the start, which JSON does not have.
    return metrics.map((metric) => ({ ...metric, values: metric.values.filter(({ value }) => Number.isFinite(value)) }))
  }
}

/** Returns a metric of Usher in the form of the Prometheus client. */
export function toPrometheus ({ name, help, type, combine, ...metric }: UsherMetric): PrometheusMetric {
  const values = (metric.samples as readonly (UsherMetric['samples'][number])[]).flatMap((sample) => {
    const { labels } = sample
    if ('value' in sample) return [{ labels, value: sample.value }]
    return [
      ...sample.buckets.map(
        ({ bound, count }) => ({ metricName: `${name}_bucket`, labels: { ...labels, le: String(bound) }, value: count })
      ),
      { metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: sample.count },
      { metricName: `${name}_sum`, labels, value: sample.sum },
      { metricName: `${name}_count`, labels, value: sample.count },
    ]
  })
  return { name, help, type, aggregator: combine, values }
}

/** Returns the metrics of a process in the text format of Prometheus. */
export function toText (metrics: readonly PrometheusMetric[]): Promise<string> {
  const registry = new Registry()
  for (const metric of metrics) registry.registerMetric(Object.assign({ get: () => metric }, metric) as never)
  return registry.metrics()
}

/** Combines the metrics of several processes. */
export function combine (processes: readonly (readonly PrometheusMetric[])[]): PrometheusMetric[] {
  return Registry.aggregate([...processes]).getMetricsAsArray(undefined as never) as unknown as PrometheusMetric[]
}

/** Returns those metrics that only grow, and that remain when their process has ended. */
export function lastingOf (metrics: readonly PrometheusMetric[]): PrometheusMetric[] {
  return metrics.filter(({ type, aggregator }) => type !== 'gauge' && (aggregator ?? 'sum') === 'sum')
}
