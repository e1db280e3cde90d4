import { sql } from 'kysely'
import { hasSqlState, schemaOf } from '../driver/postgres.ts'
import type { Database } from '../tables/index.ts'
import { ORIGIN } from './fences.ts'
import type { Identity } from './standby-problems.ts'

/** For how long a mark can be looked for, in milliseconds. It is removed later, also by nodes with other clocks. */
const MARK_MS = 30 * 60_000
const UNDEFINED_TABLE = '42P01'

/** What shows that a standby has replayed what was written to a primary, and which database of which cluster it is. */
export interface Mark extends Identity {
  /** A UUID. */
  readonly id: string
  /** The primary it was written to, as in a fence. */
  readonly origin: string
}

/** The marks of a primary. */
export interface Marks {
  /**
   * Returns a mark that was written to the primary: the last one, unless it is old or was written to another server.
   * Rejects as a statement does.
   * @param origin the server that is the primary now
   */
  of (origin: string): Promise<Mark>
}

/** Creates the marks of a primary. All its standbys share one. */
export function createMarks (db: Database): Marks {
  let last: { mark: Mark, until: number } | undefined
  let writing: Promise<Mark> | undefined

  async function write (): Promise<Mark> {
    const until = performance.now() + MARK_MS
    const mark = await writeMark(db)
    last = { mark, until }
    return mark
  }

  return {
    async of (origin) {
      if (last && last.mark.origin === origin && performance.now() < last.until) return last.mark
      writing ??= write().finally(() => { writing = undefined })
      return writing
    },
  }
}

/**
 * Writes a mark, which is found only in this database and its standbys, and removes those that are older than an hour.
 * Resolves after the commit. The same statement tells which server it was, since the next may go to another one.
 */
async function writeMark (db: Database): Promise<Mark> {
  const isOld = sql<boolean>`created_at < now() - interval '1 hour'`
  return db.with('old', (cte) => cte.deleteFrom('replica_marks').where(isOld))
    .insertInto('replica_marks').values({ id: crypto.randomUUID() })
    .returning([
      'id', ORIGIN.as('origin'), sql<string>`current_database()`.as('database'),
      sql<string>`(select system_identifier::text from pg_control_system())`.as('system'),
    ]).executeTakeFirstOrThrow()
}

/**
 * Returns the id of the newest mark of any node, or undefined if there is none, as in a database whose tables are not
 * migrated yet. Changes nothing.
 */
export async function findNewestMark (db: Database): Promise<string | undefined> {
  try {
    const newest = await db.selectFrom('replica_marks').select('id').orderBy('created_at', 'desc').limit(1)
      .executeTakeFirst()
    return newest?.id
  } catch (error) {
    if (hasSqlState(error, UNDEFINED_TABLE)) return undefined
    throw error
  }
}

/** Returns the statement that returns as `found` whether the mark whose id is the parameter has been replayed. */
export const findMark = (db: Database): string =>
  `select exists (select from "${schemaOf(db).replaceAll('"', '""')}".replica_marks where id = $1::uuid) as found`
