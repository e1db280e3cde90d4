import { BatchTelemetry } from './batch.ts'
import { SECONDS } from './histogram.ts'
import { createMetrics } from './metrics.ts'
import { findTracing } from './tracing.ts'

const ITEMS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

export type Telemetry = ReturnType<typeof createTelemetry>

/** Creates the metrics and the tracing of a mount. */
export function createTelemetry () {
  const metrics = createMetrics()
  const tracing = findTracing()
  const batches = new Map<string, BatchTelemetry>()
  const items = metrics.histogram('usher_batch_items', 'Items that share a statement', ITEMS, { label: 'batch' })
  const waited = metrics.histogram(
    'usher_batch_wait_seconds', 'Time for which the oldest item of a batch has waited', SECONDS, { label: 'batch' }
  )
  const readAll = (read: (batch: BatchTelemetry) => number) => () =>
    new Map([...batches].map(([name, batch]) => [name, read(batch)]))
  metrics.gauge(
    'usher_batch_waiting', 'Items that wait to be sent', readAll(({ waiting }) => waiting), { label: 'batch' }
  )
  metrics.count('usher_batch_rejected_total', 'Items that were rejected because too many waited, or for too long',
    readAll(({ rejected }) => rejected), { label: 'batch' })

  return {
    metrics,
    tracing,

    /** Returns the telemetry for the option `telemetry` of `batchCalls`. Several batches may share a name. */
    batch (name: string): BatchTelemetry {
      const batch = batches.get(name) ?? new BatchTelemetry(name, tracing, items(name), waited(name))
      batches.set(name, batch)
      return batch
    },

    /** Returns the number of items that were sent in all batches but one. */
    countItemsBeside: (excluded: BatchTelemetry): number =>
      [...batches.values()].reduce((sum, batch) => batch === excluded ? sum : sum + batch.total, 0),
  }
}
