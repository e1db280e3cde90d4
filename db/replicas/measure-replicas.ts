import { SECONDS } from '../telemetry/histogram.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Standby } from './standby.ts'
import type { Fallback } from './standby-connection.ts'

export type ReplicaMeasures = ReturnType<typeof measureReplicas>

const FALLBACKS: readonly Fallback[] = ['late', 'ahead', 'busy', 'failed', 'resting']

/** Adds the metrics of the replicas. Returns the functions that count reads. */
export function measureReplicas ({ metrics }: Telemetry, standbys: readonly Standby[]) {
  const reads = metrics.counter(
    'usher_replica_reads_total', 'Statements that may be read on a standby, by the server that has answered them',
    { label: 'source', values: ['standby', 'primary'] }
  )
  const fallbacks = metrics.counter(
    'usher_replica_fallbacks_total', 'Why the primary has answered such a statement', { label: 'reason', values: FALLBACKS }
  )
  const replay = metrics.histogram(
    'usher_replica_replay_seconds', 'Time for which a read has waited until the standby had replayed the WAL', SECONDS
  )()
  metrics.gauge(
    'usher_replica_used', 'Whether reads go to a standby: 0 while it rests',
    () => new Map(standbys.map(({ name, isUsed }) => [name, Number(isUsed)])), { label: 'standby', combine: 'min' }
  )
  metrics.gauge(
    'usher_replica_lag_bytes', 'WAL that a standby had not replayed when it last answered a read',
    () => new Map(standbys.flatMap(({ name, lag }) => lag === undefined ? [] : [[name, lag]])),
    { label: 'standby', combine: 'max' }
  )
  metrics.gauge(
    'usher_replica_patience_seconds', 'For how long a read waits until a standby has replayed the WAL',
    () => new Map(standbys.map(({ name, patienceMs }) => [name, patienceMs / 1000])),
    { label: 'standby', combine: 'max' }
  )
  metrics.gauge(
    'usher_replica_connections', 'Open connections to a standby',
    () => new Map(standbys.map(({ name, open }) => [name, open])), { label: 'standby' }
  )
  return {
    standby: () => reads.add(1, 'standby'),
    primary (reason: Fallback) {
      reads.add(1, 'primary')
      fallbacks.add(1, reason)
    },
    replay: (ms: number) => replay.observe(ms / 1000),
  }
}
