import { sql } from 'kysely'
import { schemaOf } from '../driver/postgres.ts'
import type { Database } from '../tables/index.ts'

/**
 * Writes a mark, which is found only in this database and its standbys, and removes those that are older than an hour.
 * Resolves after the commit with its id, a UUID.
 */
export async function writeMark (db: Database): Promise<string> {
  const id = crypto.randomUUID()
  await db.with('old', (cte) => cte.deleteFrom('replica_marks').where('created_at', '<', sql<Date>`now() - interval '1 hour'`))
    .insertInto('replica_marks').values({ id }).execute()
  return id
}

/** Returns the statement that returns as `found` whether the mark whose id is the parameter has been replayed. */
export const findMark = (db: Database): string =>
  `select exists (select from "${schemaOf(db).replaceAll('"', '""')}".replica_marks where id = $1::uuid) as found`
