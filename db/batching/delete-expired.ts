import { sql, type RawBuilder } from 'kysely'
import { replanned } from '../driver/replanned.ts'
import type { Database, Tables } from '../tables/index.ts'
import { anyOf, ctid } from '../driver/postgres.ts'

/** Which rows of a table are deleted, and at most how many of them. */
export interface Expired<Table extends keyof Tables> {
  /** The column with the time. */
  column: keyof Tables[Table] & string
  /** Rows with a time up to this one have expired. By default, it is now. */
  until?: RawBuilder<Date>
  limit: number
}

/** The tables whose rows have the time at which they expire. */
export type WithExpiry = { [Name in keyof Tables]: 'expires_at' extends keyof Tables[Name] ? Name : never }[keyof Tables]

type Expiring = WithExpiry | 'ended_sessions' | 'failed_logins' | 'recognised_networks' | 'recovery_codes'

/**
 * Deletes at most `limit` expired rows, except those that another transaction has locked: it may be a purge of another
 * node, or a request that this statement would delay. Returns the number of deleted rows.
 */
export async function deleteExpired<Table extends Expiring> (
  db: Database, table: Table, expired: Expired<Table>
): Promise<number> {
  const { numDeletedRows } = await replanned(db).deleteFrom<Expiring>(table)
    .where(ctid, '=', placesOfExpired(db, table, expired))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/**
 * Returns the right side of `ctid = …` for the rows that `deleteExpired` deletes, for statements that do more with
 * them.
 */
export function placesOfExpired<Table extends Expiring> (
  db: Database, table: Table, { column, until = sql<Date>`now()`, limit }: Expired<Table>
): RawBuilder<string> {
  return anyOf(db.selectFrom<Expiring>(table).select(ctid.as('ctid')).where(sql.ref<Date>(column), '<=', until)
    .limit(limit).forUpdate().skipLocked())
}
