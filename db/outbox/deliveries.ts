import { sql } from 'kysely'
import { v4 as uuid } from 'uuid'
import { anyOf } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import type { Row } from '../tables/row.ts'
import type { Database } from '../tables/index.ts'
import type { OutboxTable } from '../tables/outbox.ts'

/** A delivery that this node is attempting. No other node attempts it while the lease lasts. */
export type Delivery =
  Row<OutboxTable, 'position' | 'id' | 'consumer' | 'type' | 'subject' | 'data' | 'created_at' | 'attempts'> & {
    lease: string
    /** Whether it has expired. */
    expired: boolean
  }

/** Identifies an attempt. */
export type Attempt = Pick<Delivery, 'position' | 'lease'>

// A delivery that comes after another one of its subject waits for it. While that one is being attempted, the wait is
// short, because its success may wake the next one before a concurrent statement makes that wait.
const WAIT_SECONDS = 2
// How many deliveries are looked at together if many of them wait for another one of their subject. It takes a lock of
// each, so otherwise no more are looked at than are taken.
const LOOKED_AT = 100

const interval = (seconds: number) => sql`make_interval(secs => ${seconds})`

// With `=`, PostgreSQL would read all rows of the consumer from the index `outbox_owner`, and sort them, if it takes
// the table for empty. It is mostly empty until deliveries fail.
const isOneOf = (types: readonly string[]) => sql<boolean>`array_position(${types}::text[], type) is not null`

/**
 * Takes at most `limit` deliveries of a consumer that are due, for `seconds`. Of each subject, it takes only the first.
 * Others wait until that one is delivered or tried again, so that they need not be looked at before. Returns how many
 * of these were due besides.
 * @param isCrowded whether there may be many of these. Then more are looked at
 */
export async function claimDeliveries (
  db: Database,
  { consumer, types, limit, seconds, isCrowded = false }: {
    consumer: string, types: readonly string[], limit: number, seconds: number, isCrowded?: boolean
  }
): Promise<{ claimed: Delivery[], waiting: number }> {
  const rows = await replanned(db)
    .with('due', (cte) => cte.selectFrom('outbox').select(['position', 'subject', 'due_at'])
      .where('consumer', '=', consumer).where('due_at', '<=', sql<Date>`now()`)
      .where(isOneOf(types))
      // Of deliveries that are due at the same time, whichever the index has first. Sorting those of a large change
      // would mean to read all of them for each few.
      .orderBy('due_at').limit(isCrowded ? Math.max(limit, LOOKED_AT) : limit).forUpdate().skipLocked())
    .with('first', (cte) => cte.selectFrom('due').innerJoinLateral((lateral) => lateral.selectFrom('outbox')
      .select(['outbox.position as first', 'outbox.due_at', 'outbox.lease'])
      // Only the index `outbox_subject` has this order. With `=` PostgreSQL would read all rows by their positions if
      // it takes the table for empty (`db/driver/postgres.ts`).
      .where(sql<boolean>`(outbox.consumer, outbox.subject) >= (${consumer}, due.subject)`)
      .orderBy('outbox.consumer').orderBy('outbox.subject')
      .orderBy('outbox.position').limit(1).as('head'), (join) => join.onTrue())
      .select(['due.position', 'head.first', 'head.due_at', 'head.lease'])
      .select(sql<string>`row_number() over (
        partition by head.first = due.position order by due.due_at, due.position
      )`.as('number')))
    .updateTable('outbox').from('first').whereRef('outbox.position', '=', 'first.position')
    .where(({ eb, or, ref }) =>
      or([eb('first.first', '<>', ref('outbox.position')), eb('first.number', '<=', String(limit))]))
    .where('outbox.position', '=', ({ selectFrom }) => anyOf(selectFrom('due').select('position')))
    .set({
      lease: sql<string | null>`case when first.first = outbox.position then ${uuid()}::uuid end`,
      attempts: sql<number>`outbox.attempts + (first.first = outbox.position)::integer`,
      due_at: sql<Date>`case
        when first.first = outbox.position then now() + ${interval(seconds)}
        when first.lease is null and first.due_at > now() then first.due_at
        else now() + ${interval(WAIT_SECONDS)}
      end`,
    })
    .returning([
      'outbox.position', 'outbox.id', 'outbox.consumer', 'outbox.type', 'outbox.subject', 'outbox.data',
      'outbox.created_at as createdAt', 'outbox.attempts', 'outbox.lease',
      sql<boolean>`outbox.expires_at <= now()`.as('expired'),
    ])
    .execute()
  const claimed = rows.filter((row): row is Delivery => row.lease !== null)
  claimed.sort((one, other) => Number(one.position) - Number(other.position))
  return { claimed, waiting: rows.length - claimed.length }
}

/**
 * Returns the milliseconds until the next delivery of a consumer is due, at most `maxMs`. Zero or less if one has
 * become due since deliveries were claimed, or is just being claimed by another node.
 */
export async function findDelay (
  db: Database, { consumer, types }: { consumer: string, types: readonly string[] }, maxMs: number
): Promise<number> {
  const delay = sql<number>`extract(epoch from due_at - now())::float8 * 1000`.as('delay')
  const row = await db.selectFrom('outbox').select(delay)
    .where('consumer', '=', consumer).where(isOneOf(types))
    .orderBy('due_at').limit(1).executeTakeFirst()
  return Math.min(row?.delay ?? maxMs, maxMs)
}

const given = (attempts: readonly Attempt[]) => sql<{ position: string, lease: string }>`unnest(
  ${attempts.map(({ position }) => position)}::bigint[], ${attempts.map(({ lease }) => lease)}::uuid[]
)`.as<'given'>(sql`given(position, lease)`)

/**
 * Deletes deliveries that have succeeded, as one statement, and makes the next ones of their subjects due. An attempt
 * whose lease another node has taken over meanwhile has no effect. Returns one `undefined` per attempt, for the batch.
 */
export async function deleteDeliveries (db: Database, attempts: readonly Attempt[]): Promise<undefined[]> {
  await replanned(db)
    .with('done', (cte) => cte.deleteFrom('outbox').using(given(attempts))
      .whereRef('outbox.position', '=', 'given.position').whereRef('outbox.lease', '=', 'given.lease')
      .where('outbox.position', '=', sql<string>`any(${attempts.map(({ position }) => position)}::bigint[])`)
      .returning(['outbox.consumer', 'outbox.subject', 'outbox.position']))
    .with('next', (cte) => cte.selectFrom('done').innerJoinLateral((lateral) => lateral.selectFrom('outbox')
      .select(['outbox.consumer', 'outbox.subject', 'outbox.position'])
      // As above.
      .where(
        sql<boolean>`(outbox.consumer, outbox.subject, outbox.position) > (done.consumer, done.subject, done.position)`
      )
      .orderBy('outbox.consumer').orderBy('outbox.subject')
      .orderBy('outbox.position').limit(1).as('following'), (join) => join
      .onRef('following.consumer', '=', 'done.consumer').onRef('following.subject', '=', 'done.subject'))
      .select('following.position'))
    .updateTable('outbox').where('position', '=', ({ selectFrom }) => anyOf(selectFrom('next').select('position')))
    .where('lease', 'is', null)
    .set({ due_at: sql<Date>`clock_timestamp()` })
    .execute()
  return attempts.map(() => undefined)
}

/**
 * Makes a delivery that has failed due again after `seconds`. Returns whether it is too old for that, and remains as it
 * is.
 */
export async function postponeDelivery (
  db: Database, { position, lease }: Attempt, seconds: number
): Promise<'postponed' | 'expired'> {
  const { numUpdatedRows } = await db.updateTable('outbox')
    .set({ lease: null, due_at: sql<Date>`clock_timestamp() + ${interval(seconds)}` })
    .where('position', '=', position).where('lease', '=', lease)
    .where('expires_at', '>', sql<Date>`clock_timestamp() + ${interval(seconds)}`)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n ? 'postponed' : 'expired'
}
