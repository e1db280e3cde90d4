import { sql } from 'kysely'
import type { Database } from '../tables/index.ts'

const KEY = sql`hashtextextended('usher removal of uploads', 0)`

/**
 * Returns whether files of uploads may be removed in this transaction. While a backup copies files, they may not: the
 * records that it has read need their bytes. They are removed afterwards.
 */
export async function mayRemoveUploads (trx: Database): Promise<boolean> {
  const { rows: [row] } =
    await sql<{ may: boolean }>`select pg_try_advisory_xact_lock_shared(${KEY}) as may`.execute(trx)
  return row!.may
}

/** Keeps files of uploads from being removed until the transaction ends. Waits for removals that are running. */
export async function keepUploads (trx: Database): Promise<void> {
  await sql`select pg_advisory_xact_lock(${KEY})`.execute(trx)
}
