import type { CircuitBreaker } from './circuit-breaker.ts'
import type { Pools } from './dialect.ts'
import { SECONDS } from '../telemetry/histogram.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

/** Adds the metric of the duration of statements. Returns the function that is called with each of them, in seconds. */
export function measureStatements ({ metrics }: Telemetry): (seconds: number) => void {
  const duration =
    metrics.histogram('usher_database_statement_seconds', 'Time until the database has answered a statement', SECONDS)()
  return (seconds) => duration.observe(seconds)
}

/** Adds the metrics of the circuit breaker and of the connections. */
export function measureDatabase (
  { metrics }: Telemetry, { breaker, reads, writes, transactions }: Pick<Pools, 'reads' | 'writes' | 'transactions'> &
    { breaker: CircuitBreaker }
): void {
  metrics.gauge(
    'usher_database_available', 'Whether statements are sent: 0 while the circuit breaker is open',
    () => Number(breaker.closed), { combine: 'min' }
  )
  metrics.count(
    'usher_database_outages_total',
    'How often the circuit breaker has opened: in each process, and again after failed probes',
    () => breaker.outages
  )
  metrics.gauge('usher_database_statements_waiting', 'Statements that wait for an answer', () => breaker.waiting)
  metrics.gauge(
    'usher_database_longest_wait_seconds', 'Time for which the oldest of them has waited',
    () => breaker.longestWait / 1000, { combine: 'max' }
  )
  metrics.gauge(
    'usher_database_connections', 'Open connections for reads, for writes, and for transactions', () => new Map([
      ['reads', reads.open], ['writes', writes.open], ['transactions', transactions.open],
    ]), { label: 'pool' }
  )
  metrics.gauge(
    'usher_database_transactions_waiting', 'Transactions that wait for a connection', () => transactions.waiting
  )
}
