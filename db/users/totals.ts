import { sql } from 'kysely'
import { readBackupAge } from '../audit/audit.ts'
import type { Database } from '../tables/index.ts'

// Counting more rows would take long, and says nothing that this many do not.
const COUNTED = 100_000

/** What the tables contain, for metrics. */
export interface Totals {
  files: number
  /** The bytes of all stored files. */
  bytes: number
  /** Deliveries that wait, up to 100,000, and the seconds for which the oldest has waited since it was due. */
  waiting: number
  oldest: number
  /** Deliveries that were given up. */
  failed: number
  /** The seconds since the last backup, if one is known. */
  backupAge: number | undefined
}

/** Returns the totals of the tables. This takes longer the more files there are. */
export async function readTotals (db: Database): Promise<Totals> {
  const overdue = sql<number>`greatest(0, extract(epoch from clock_timestamp() - due_at))::float8`
  const [uploads, deliveries, failures, backupAge] = await Promise.all([
    db.selectFrom('uploads')
      .select([sql<number>`count(*)::float8`.as('files'), sql<number>`coalesce(sum(size), 0)::float8`.as('bytes')])
      .executeTakeFirstOrThrow(),
    db.selectFrom((query) => query.selectFrom('outbox').select(overdue.as('overdue')).limit(COUNTED).as('some'))
      .select([sql<number>`count(*)::float8`.as('waiting'), sql<number>`coalesce(max(overdue), 0)`.as('oldest')])
      .executeTakeFirstOrThrow(),
    db.selectFrom('failed_deliveries').select(sql<number>`count(*)::float8`.as('failed')).executeTakeFirstOrThrow(),
    readBackupAge(db),
  ])
  return { ...uploads, ...deliveries, ...failures, backupAge }
}
