import { sql } from 'kysely'
import { batchCalls } from '../batching/batching.ts'
import type { Database } from '../tables/index.ts'

/** Which transactions are visible: those before `xmax` that do not run. */
export interface Snapshot {
  /** Transactions from this one on are not visible. */
  readonly xmax: number
  readonly running: readonly number[]
}

/** What the primary has said about itself at some time. */
export interface Fence {
  /** The WAL up to here contains everything that was acknowledged, and everything that was visible on the primary. */
  readonly lsn: string
  /** What was visible on the primary. */
  readonly snapshot: Snapshot
  readonly timeline: number
  /** Tells this process of the primary from an earlier one, and from another server. */
  readonly origin: string
}

/** Asks the primary. Every fence is of a time after the call. Rejects as a statement does. */
export interface Fences {
  next (): Promise<Fence>
}

// A commit that is not flushed is acknowledged only with `synchronous_commit = off`. The snapshot is taken first, so
// whatever it shows is before the position.
const POSITION = sql<string>`
  (case current_setting('synchronous_commit') when 'off' then pg_current_wal_insert_lsn()
    else pg_current_wal_flush_lsn() end)::text`

/** The timeline of a primary, in hexadecimal digits. */
export const TIMELINE = sql<string>`left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)`

/** Tells a process of a server from any other, and from itself after a promotion: its timeline, and when it started. */
export const ORIGIN = sql<string>`${TIMELINE} || ' ' || extract(epoch from pg_postmaster_start_time())::text`

/** Creates the fences of a primary. All callers that wait share a statement: one is in flight, and one next. */
export function createFences (db: Database): Fences {
  const query = db.selectNoFrom([
    POSITION.as('lsn'),
    sql<string>`pg_current_snapshot()::text`.as('snapshot'),
    TIMELINE.as('timeline'),
    ORIGIN.as('origin'),
  ]).compile()
  const read = batchCalls(async (_: 'fence'[]): Promise<Fence[]> => {
    const { rows: [row] } = await db.executeQuery(query)
    const { lsn, snapshot, timeline, origin } = row!
    return [{ lsn, snapshot: parseSnapshot(snapshot), timeline: parseInt(timeline, 16), origin }]
  }, { inFlight: 1 })
  return { next: () => read('fence') }
}

// The text is `xmin:xmax:` and a list. Numbers of transactions have 64 bits, of which 53 are enough for millennia.
function parseSnapshot (text: string): Snapshot {
  const [, xmax = '', running = ''] = text.split(':')
  return { xmax: Number(xmax), running: running === '' ? [] : running.split(',').map(Number) }
}
