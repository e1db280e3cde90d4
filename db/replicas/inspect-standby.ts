import { sql } from 'kysely'
import { DEADLINES } from '../../schema/options/deadlines.ts'
import { readClientOptions } from '../driver/client-options.ts'
import { createRoute } from '../driver/route.ts'
import type { Database } from '../tables/index.ts'
import { createFences } from './fences.ts'
import { findMark, findNewestMark } from './marks.ts'
import { Patience } from './patience.ts'
import { NotRead, StandbyConnection } from './standby-connection.ts'

/** What can be said about a standby at a moment. */
export type StandbyStatus =
  /** Why reads cannot go there. */
  | { problem: string }
  /** The WAL of the primary that it has not replayed yet, in bytes, and how many connections of Usher it has. */
  | { problem?: undefined, behindBytes: number, connections: number }

/**
 * Returns the state of a standby, which it verifies as nodes do before they send reads there. Changes nothing. Throws
 * if it cannot be reached.
 * @param db the primary
 */
export async function inspectStandby (db: Database, url: string, deadlines = DEADLINES): Promise<StandbyStatus> {
  const { unshared } = createRoute(readClientOptions(url, deadlines.statement, deadlines))
  const connection = new StandbyConnection(unshared, deadlines, new Patience(deadlines))
  try {
    const { rows: [primary] } = await sql<{ system: string, database: string }>`
      select system_identifier::text as system, current_database() as database from pg_control_system()`.execute(db)
    const id = await findNewestMark(db)
    // The mark was written before.
    const fence = await createFences(db).next()
    const identity = await connection.identify()
    const lag = await connection.measure(fence)
    try {
      await connection.verify(fence, identity, { mark: { ...primary!, id }, findMark: findMark(db) })
    } catch (error) {
      // It may have replayed the mark later. How late it is, is said by its lag.
      if (!(error instanceof NotRead && error.fallback === 'late')) throw error
    }
    return lag
  } catch (error) {
    if (error instanceof NotRead) return { problem: error.problem }
    throw error
  } finally {
    connection.destroy()
  }
}
