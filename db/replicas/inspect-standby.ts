import { sql } from 'kysely'
import { DEADLINES } from '../../schema/options/deadlines.ts'
import { inTime } from '../../schema/runtime/in-time.ts'
import { readClientOptions } from '../driver/client-options.ts'
import { TransactionConnection } from '../driver/transaction-connection.ts'
import type { Database } from '../tables/index.ts'
import { TIMELINE } from './fences.ts'
import { findForeign, findReceiverProblem, IS_PRIMARY } from './standby-problems.ts'

/** What can be said about a standby at a moment. */
export interface StandbyStatus {
  /** Why reads cannot go there; absent if they can. */
  problem?: string
  /** The WAL of the primary that it has not replayed yet, in bytes. */
  behindBytes: number
  /** How many connections of Usher it has. */
  connections: number
}

/**
 * Returns the state of a standby. Changes nothing. Throws if it cannot be reached.
 * @param db the primary
 */
export async function inspectStandby (db: Database, url: string, deadlines = DEADLINES): Promise<StandbyStatus> {
  const connection = new TransactionConnection(readClientOptions(url, deadlines.statement, deadlines))
  try {
    const { rows: [primary] } = await sql<{ system: string, database: string, timeline: string, lsn: string }>`
      select system_identifier::text as system, current_database() as database, ${TIMELINE} as timeline,
        pg_current_wal_flush_lsn()::text as lsn
      from pg_control_system()`.execute(db)
    const noAnswer = () => new Error('it does not answer')
    const [found] = await inTime(connection.run(STATUS, [primary!.lsn]), deadlines.databaseStart, noAnswer)
    const { standby, system, database, timeline, receiver, behind, connections } = found!
    const own = { behindBytes: Math.max(0, behind), connections }
    if (!standby) return { ...own, problem: IS_PRIMARY }
    const problem = findForeign({ system, database }, primary!) ?? findReceiverProblem(receiver)
    if (problem !== undefined) return { ...own, problem }
    const expected = parseInt(primary!.timeline, 16)
    if (timeline !== expected) {
      return { ...own, problem: `it has timeline ${timeline}, and the primary has timeline ${expected}` }
    }
    return own
  } finally {
    connection.destroy()
  }
}

const STATUS = `select pg_is_in_recovery() as standby, current_database() as database,
  (select system_identifier::text from pg_control_system()) as system,
  (select coalesce(status, 'hidden') from pg_stat_wal_receiver) as receiver,
  (select received_tli from pg_stat_wal_receiver) as timeline,
  case when pg_is_in_recovery()
    then pg_wal_lsn_diff($1::text::pg_lsn, pg_last_wal_replay_lsn())::float8 else 0 end as behind,
  (select count(*)::int from pg_stat_activity where application_name = 'usher' and pid <> pg_backend_pid())
    as connections`
