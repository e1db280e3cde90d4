import { sql, type RawBuilder } from 'kysely'
import { TooManyRequests } from '../schema/errors.ts'
import type { Database } from './tables.ts'

/** How often something may be tried: so often at once, and once an interval in the long run. */
export interface Limit {
  /** Attempts. */
  burst: number
  /** Microseconds. */
  interval: number
}

/** One attempt; those of equal keys share a limit. */
export interface Attempt { readonly key: string }

// Of the statement, once it has the row: the time of its transaction may be before that of one it has waited for.
const now = sql<Date>`clock_timestamp()`

const asked = (keys: string[], counts: number[]) =>
  sql<{ key: string, number: number }>`unnest(${keys}::text[], ${counts}::integer[])`.as<'asked'>(sql`asked(key, number)`)

/**
 * Charges attempts, as one statement, by the generic cell rate algorithm: a row says when all of its limit will be
 * free, and each attempt puts that off by an interval. Of equal keys the first are let through, as many as there is
 * room for; one that is refused costs nothing. The clock is the database's, so that all nodes have the same.
 *
 * @returns in their order: undefined, or `TooManyRequests` in the place of one that is refused
 */
export async function charge (db: Database, { burst, interval }: Limit, attempts: readonly Attempt[]): Promise<(undefined | TooManyRequests)[]> {
  const most = sql<number>`least(number, ${burst}::integer)`
  const room = sql<number>`least(excluded.granted, greatest(0, ${burst}::integer - ceil(${secondsTo(sql`throttle.free_at`)} * 1000000 / ${interval}::bigint)))::integer`
  const rows = await db
    .insertInto('throttle')
    .columns(['key', 'free_at', 'granted'])
    // In the order of the keys, as everywhere here: of two statements that lock the same rows, one waits for the other.
    .expression(({ selectFrom }) => selectFrom(asked(...count(attempts))).orderBy('key')
      .select(['key', sql<Date>`${now} + ${times(interval, most)}`.as('free_at'), most.as('granted')]))
    .onConflict((conflict) => conflict.column('key').doUpdateSet({
      free_at: sql<Date>`greatest(throttle.free_at, ${now}) + ${times(interval, room)}`,
      granted: room,
    }))
    .returning(['key', 'granted', sql<number>`${secondsTo(sql`free_at`)}::float8`.as('seconds')])
    .execute()
  const rowOf = new Map(rows.map((row) => [row.key, row]))
  return attempts.map(({ key }) => {
    const row = rowOf.get(key)!
    return row.granted-- > 0 ? undefined : new TooManyRequests(row.seconds - (burst - 1) * interval / 1e6)
  })
}

/** Takes back what attempts were charged. */
export async function refund (db: Database, { interval }: Limit, attempts: readonly Attempt[]): Promise<undefined[]> {
  await db
    .with('held', (cte) => cte.selectFrom(asked(...count(attempts))).innerJoin('throttle', 'throttle.key', 'asked.key')
      .select(['throttle.key', 'number']).orderBy('throttle.key').forUpdate('throttle'))
    .updateTable('throttle').from('held')
    .set({ free_at: sql<Date>`throttle.free_at - ${times(interval, sql`held.number`)}` })
    .whereRef('throttle.key', '=', 'held.key')
    .execute()
  return attempts.map(() => undefined)
}

/**
 * Deletes rows, at most `limit` of them: those that are free again, and beyond `keep` those that would be free
 * soonest. A flood from ever new addresses so leaves no more than that, and whoever has used up a limit stays
 * refused: to be forgotten takes as many others that have used theirs. How many were deleted.
 */
export async function deleteFreeLimits (db: Database, { keep, limit }: { keep: number, limit: number }): Promise<number> {
  const { numDeletedRows } = await db
    .with('beyond', (cte) => cte.selectFrom('throttle').select('free_at').orderBy('free_at', 'desc').offset(keep).limit(1))
    .with('free', (cte) => cte.selectFrom('throttle').select('key')
      .where('free_at', '<=', ({ selectFrom }) => selectFrom('beyond').select(sql<Date>`greatest(now(), max(free_at))`.as('until')))
      .orderBy('free_at').limit(limit).forUpdate().skipLocked())
    .deleteFrom('throttle').where('key', 'in', ({ selectFrom }) => selectFrom('free').select('key'))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

// A statement may not touch a row twice.
function count (attempts: readonly Attempt[]): [keys: string[], counts: number[]] {
  const counts = new Map<string, number>()
  for (const { key } of attempts) counts.set(key, (counts.get(key) ?? 0) + 1)
  return [[...counts.keys()], [...counts.values()]]
}

const times = (interval: number, number: RawBuilder<unknown>) => sql<string>`interval '1 microsecond' * (${interval}::float8 * ${number})`
const secondsTo = (time: RawBuilder<unknown>) => sql<number>`extract(epoch from ${time} - ${now})`
