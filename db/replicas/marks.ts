import { sql } from 'kysely'
import { schemaOf } from '../driver/postgres.ts'
import type { Database } from '../tables/index.ts'
import { ORIGIN } from './fences.ts'

/** For how long a mark can be looked for, in milliseconds. It is removed later, also by nodes with other clocks. */
export const MARK_MS = 30 * 60_000

/** What shows that a standby has replayed what was written to a primary. */
export interface Mark {
  /** A UUID. */
  readonly id: string
  /** The primary it was written to, as in a fence. */
  readonly origin: string
}

/**
 * Writes a mark, which is found only in this database and its standbys, and removes those that are older than an hour.
 * Resolves after the commit. The same statement tells which server it was, since the next may go to another one.
 */
export async function writeMark (db: Database): Promise<Mark> {
  const isOld = sql<boolean>`created_at < now() - interval '1 hour'`
  return db.with('old', (cte) => cte.deleteFrom('replica_marks').where(isOld))
    .insertInto('replica_marks').values({ id: crypto.randomUUID() })
    .returning(['id', ORIGIN.as('origin')]).executeTakeFirstOrThrow()
}

/** Returns the statement that returns as `found` whether the mark whose id is the parameter has been replayed. */
export const findMark = (db: Database): string =>
  `select exists (select from "${schemaOf(db).replaceAll('"', '""')}".replica_marks where id = $1::uuid) as found`
