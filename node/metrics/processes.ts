import type { PrometheusMetric } from './prometheus.ts'

/**
 * The measurements that the first process would add up or average, and that say which of its processes is in trouble.
 */
const measurements = [
  {
    name: 'usher_process_event_loop_delay_seconds',
    type: 'gauge',
    from: 'nodejs_eventloop_lag_p99_seconds',
    help: 'The 99th percentile of the delay of the event loop of a process since the last scrape',
  },
  {
    name: 'usher_process_gc_seconds_total',
    type: 'counter',
    from: 'nodejs_gc_duration_seconds',
    help: 'Time for which a process has collected garbage',
  },
  {
    name: 'usher_process_heap_bytes',
    type: 'gauge',
    from: 'nodejs_heap_size_used_bytes',
    help: 'Heap that a process uses',
  },
] as const

/**
 * Returns what is measured of each process, by its place among the processes of the node, from 1 on. A process that
 * takes the place of another one has its label, so that the number of labels is that of the processes.
 */
export function ofProcesses (processes: ReadonlyMap<number, readonly PrometheusMetric[]>): PrometheusMetric[] {
  return measurements.map(({ from, ...metric }) => ({
    ...metric,
    aggregator: 'sum',
    values: [...processes].flatMap(([place, metrics]) => {
      const values = metrics.find(({ name }) => name === from)?.values ?? []
      // Of a histogram, the sums of all kinds.
      const counted = values.filter(({ metricName = from }) => metricName === from || metricName === `${from}_sum`)
      if (counted.length === 0) return []
      return [{ labels: { process: String(place) }, value: counted.reduce((sum, { value }) => sum + value, 0) }]
    }),
  }))
}
