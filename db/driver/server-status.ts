import { sql } from 'kysely'
import { countPresent, presenceOf } from './presence.ts'
import { schemaOf } from './postgres.ts'
import type { Database } from '../tables/index.ts'

/** What is known about a PostgreSQL server. */
export interface ServerStatus {
  version: string
  /** Whether it is a standby, which accepts no writes. */
  isStandby: boolean
  /** How many nodes of the schema listen to the database. */
  nodes: number
  /** How many seconds the clock of this machine is ahead of that of the server. The error is half of `roundTrip`. */
  clockAhead: number
  roundTrip: number
}

/** Returns what a server tells about itself. */
export async function readServerStatus (db: Database): Promise<ServerStatus> {
  const sent = Date.now()
  const { rows: [clock] } =
    await sql<{ now: number }>`select extract(epoch from clock_timestamp())::float8 as now`.execute(db)
  const received = Date.now()
  const { rows: [server] } = await sql<Pick<ServerStatus, 'version' | 'isStandby'>>`
    select current_setting('server_version') as version, pg_is_in_recovery() as "isStandby"`.execute(db)
  const nodes = await countPresent(db, presenceOf(schemaOf(db)))
  return { ...server!, nodes, clockAhead: (sent + received) / 2000 - clock!.now, roundTrip: (received - sent) / 1000 }
}
