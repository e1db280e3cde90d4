import { sql } from 'kysely'
import { batchCalls } from '../batching/batching.ts'
import type { Database } from '../tables/index.ts'
import type { Tracing } from '../telemetry/tracing.ts'

/** Which transactions are visible: those before `xmax` that do not run. */
export interface Snapshot {
  /** Transactions from this one on are not visible. */
  readonly xmax: number
  readonly running: readonly number[]
}

/** What the primary has said about itself at some time. */
export interface Fence {
  /**
   * The WAL up to here contains everything that was acknowledged, and everything that was visible on the primary, also
   * if it is not flushed yet.
   */
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

/** The timeline of a primary, in hexadecimal digits. */
export const TIMELINE = sql<string>`left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)`

/** Tells a process of a server from any other, and from itself after a promotion: its timeline, and when it started. */
export const ORIGIN = sql<string>`${TIMELINE} || ' ' || extract(epoch from pg_postmaster_start_time())::text`

/**
 * Creates the fences of a primary. All callers that wait share a statement: one is in flight, and one next.
 *
 * The position is that of the insertion. That of the flush would not do: a session with `synchronous_commit = off`, of
 * which there may be one on any node and in any program, is acknowledged before that
 * (docs/decisions/reads-from-standbys.md). The snapshot is taken first, so whatever it shows is before the position.
 */
export function createFences (db: Database, tracing?: Tracing): Fences {
  const query = db.selectNoFrom([
    sql<string>`pg_current_wal_insert_lsn()::text`.as('lsn'),
    sql<number>`current_setting('wal_block_size')::int`.as('block'),
    sql<number>`pg_size_bytes(current_setting('wal_segment_size'))::int`.as('segment'),
    sql<string>`pg_current_snapshot()::text`.as('snapshot'),
    TIMELINE.as('timeline'),
    ORIGIN.as('origin'),
  ]).compile()
  const read = batchCalls(async (_: 'fence'[]): Promise<Fence[]> => {
    const { rows: [row] } = await db.executeQuery(query)
    const { lsn, block, segment, snapshot, timeline, origin } = row!
    return [{
      lsn: endOfRecords(lsn, { block, segment }),
      snapshot: parseSnapshot(snapshot),
      timeline: parseInt(timeline, 16),
      origin,
    }]
  }, { inFlight: 1, tracing })
  return { next: () => read('fence') }
}

// The headers of pages, in bytes. That of the first page of a segment is longer.
const PAGE_HEADER = 24
const SEGMENT_HEADER = 40

/**
 * Returns where the last record before a position of the insertion ends. If it ends with its page, that position is
 * behind the header of the next one, which no standby replays before the next record. After a switch of segments, such
 * as that of `archive_timeout`, that may take hours.
 * @param sizes those of pages and of segments, in bytes
 */
export function endOfRecords (lsn: string, { block, segment }: { block: number, segment: number }): string {
  const [high, digits = ''] = lsn.split('/')
  const low = parseInt(digits, 16)
  const header = low % segment === SEGMENT_HEADER
    ? SEGMENT_HEADER
    : low % block === PAGE_HEADER && low % segment !== PAGE_HEADER ? PAGE_HEADER : 0
  return `${high}/${(low - header).toString(16).toUpperCase()}`
}

// The text is `xmin:xmax:` and a list. Numbers of transactions have 64 bits, of which 53 are enough for millennia.
function parseSnapshot (text: string): Snapshot {
  const [, xmax = '', running = ''] = text.split(':')
  return { xmax: Number(xmax), running: running === '' ? [] : running.split(',').map(Number) }
}
