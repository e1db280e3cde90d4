import { sql } from 'kysely'
import { channelOf } from '../driver/channel.ts'
import type { Database } from '../tables/index.ts'

/** The deliveries that wait for a consumer. */
export interface Waiting {
  consumer: string
  count: number
  /** How many of them have failed before. */
  retrying: number
  oldest: Date
  nextAttempt: Date
}

/** Returns how many deliveries wait, by their consumer. Mails have the consumer `mail`. */
export async function countWaiting (db: Database): Promise<Waiting[]> {
  return db.selectFrom('outbox').select(({ fn }) => [
    'consumer',
    sql<number>`count(*)::integer`.as('count'),
    sql<number>`(count(*) filter (where attempts > 0))::integer`.as('retrying'),
    fn.min('created_at').as('oldest'),
    fn.min('due_at').as('nextAttempt'),
  ]).groupBy('consumer').orderBy('consumer').execute()
}

/**
 * Makes the deliveries due that have failed and wait for another attempt, and wakes the nodes. Those of the same
 * subject that come after them follow. Returns their number.
 */
export async function attemptNow (db: Database, schema: string): Promise<number> {
  const { numUpdatedRows } = await db.updateTable('outbox').set({ due_at: sql<Date>`clock_timestamp()` })
    .where('attempts', '>', 0).where('lease', 'is', null)
    .where('due_at', '>', sql<Date>`clock_timestamp()`).executeTakeFirstOrThrow()
  await sql`select pg_notify(${channelOf(schema, 'outbox_written')}, '')`.execute(db)
  return Number(numUpdatedRows)
}
