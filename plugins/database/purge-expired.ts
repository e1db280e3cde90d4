import { sql } from 'kysely'
import { deleteExpired } from '../../db/batching/delete-expired.ts'
import { expiringTables, type Expiry, type ExpiringTable } from '../../db/tables/expiring-tables.ts'
import type { Core } from '../core.ts'
import { purgeRegularly, PURGE_BATCH_SIZE } from '../support/purge.ts'

/** Deletes the rows that have expired, of each table that `expiringTables` names. */
export function purgeExpired ({ lifecycle, options, database: { db } }: Core): void {
  for (const [table, expiry] of Object.entries(expiringTables) as [ExpiringTable, Expiry<ExpiringTable> | 'elsewhere'][]) {
    if (expiry === 'elsewhere') continue
    const { data, column, age = () => 0, purgeSeconds } = expiry
    const until = sql<Date>`now() - make_interval(secs => ${age(options)})`
    purgeRegularly(lifecycle, data, purgeSeconds, () =>
      deleteExpired(db, table, { column, until, limit: PURGE_BATCH_SIZE }))
  }
}
