import { readTotals, type Totals } from '../../db/users/totals.ts'
import { DatabaseUnavailable } from '../../schema/http/errors.ts'
import { settlesWithin } from '../../schema/runtime/in-time.ts'
import type { Core } from '../core.ts'

const MIN_PAUSE_MS = 1000
// Of its time, the database spends a fiftieth on this at most.
const PAUSE_FACTOR = 50
// A page does not wait for longer.
const PAGE_MS = 50

/**
 * Adds the metrics that only the database knows. They are read while somebody asks for metrics, and the less often the
 * longer it takes. If the database does not answer soon, the last known values are shown.
 *
 * Returns a function that returns the last known values, undefined if there are none yet, and reads them again.
 */
export function addTotals (
  { lifecycle, database: { db }, telemetry: { metrics }, options: { deadlines } }: Omit<Core, 'database'> &
    { database: Pick<Core['database'], 'db'> }
): () => Promise<Totals | undefined> {
  const { log } = lifecycle
  let known: Totals | undefined
  let reading: Promise<void> | undefined
  let nextAt = 0
  let isClosing = false

  // Never rejects.
  async function read (): Promise<void> {
    const start = performance.now()
    try {
      known = await readTotals(db)
    } catch (err) {
      if (!(err instanceof DatabaseUnavailable)) log.warn({ err }, 'The totals for metrics could not be read')
    }
    const now = performance.now()
    nextAt = now + Math.max(MIN_PAUSE_MS, (now - start) * PAUSE_FACTOR)
    reading = undefined
  }

  async function refresh (timeoutMs: number): Promise<void> {
    if (!isClosing && !reading && performance.now() >= nextAt) reading = read()
    if (reading) await settlesWithin(reading, timeoutMs)
  }

  metrics.beforeRead(() => refresh(deadlines.metrics))
  // The database closes next. Metrics can still be read, such as the last values of a worker, and show the last known
  // totals.
  lifecycle.addHook('onClose', async () => {
    isClosing = true
    await reading
  })
  const add = (name: string, help: string, read: (totals: Totals) => number | undefined): void =>
    metrics.gauge(name, help, () => known && read(known), { combine: 'max' })
  add('usher_stored_files', 'Files in the storage of uploads', ({ files }) => files)
  add('usher_stored_bytes', 'Bytes of these files', ({ bytes }) => bytes)
  add('usher_outbox_waiting', 'Deliveries of events and mails that wait, up to 100,000', ({ waiting }) => waiting)
  add('usher_outbox_delay_seconds', 'Time for which a delivery is overdue, at most', ({ oldest }) => oldest)
  add('usher_outbox_given_up', 'Deliveries of events that were given up', ({ failed }) => failed)
  add(
    'usher_backup_age_seconds', 'Time since the last backup, if the account log has one', ({ backupAge }) => backupAge
  )

  return async () => {
    await refresh(Math.min(PAGE_MS, deadlines.metrics))
    return known
  }
}
