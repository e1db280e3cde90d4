import type { Metrics } from '../../../db/telemetry/metrics.ts'
import { OPERATIONS, type RequestCounts } from './requests.ts'

/** Returns what counts the requests to an S3, if there are metrics. */
export function countRequests (metrics: Metrics | undefined): RequestCounts {
  if (!metrics) return { attempt () {}, failure () {} }
  const label = { label: 'operation', values: OPERATIONS }
  const attempts = metrics.counter('usher_storage_requests_total', 'Requests to the S3 of uploads', label)
  const failures = metrics.counter(
    'usher_storage_request_failures_total', 'Requests to the S3 of uploads that have failed, with those that were repeated', label
  )
  return { attempt: (operation) => attempts.add(1, operation), failure: (operation) => failures.add(1, operation) }
}
