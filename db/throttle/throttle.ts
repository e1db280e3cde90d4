import { createHash } from 'node:crypto'
import { sql, type RawBuilder } from 'kysely'
import { TooManyRequests } from '../../schema/http/errors.ts'
import { anyOf, schemaOf } from '../driver/postgres.ts'
import { channelOf } from '../driver/channel.ts'
import { replanned } from '../driver/replanned.ts'
import type { Database } from '../tables/index.ts'

/** How often something may be attempted: `burst` times at once, and once per `interval` in the long run. */
export interface Limit {
  /** Number of attempts. */
  burst: number
  /** Microseconds. */
  interval: number
  /** The most that the limit of a wider network has. */
  share?: Omit<Limit, 'share'> | undefined
}

/** One attempt. Attempts with equal keys share a limit. */
export interface Attempt {
  readonly key: string
  /** How many times the limit the key has. */
  readonly factor: number
}

const factorOf = (key: string) => sql<number>`coalesce(substring(${sql.ref(key)} from '[*](\\d+) ')::integer, 1)`

// The limit of a key in SQL. `sizeOf` is the same in JavaScript.
const burstOf = (key: string, { burst, share }: Limit) =>
  sql<number>`least(${burst}::integer * ${factorOf(key)}, ${share?.burst ?? MAX_BURST}::integer)`
const intervalOf = (key: string, { interval, share }: Limit) =>
  sql<number>`greatest(${interval}::float8 / ${factorOf(key)}, ${share?.interval ?? 0}::float8)`

const MAX_BURST = 2 ** 31 - 1

function sizeOf ({ burst, interval, share }: Limit, factor: number): { burst: number, interval: number } {
  return {
    burst: Math.min(burst * factor, share?.burst ?? MAX_BURST),
    interval: Math.max(interval / factor, share?.interval ?? 0),
  }
}

/** The limits of failed logins that an account has of its own: from anywhere, and from each recognised network. */
export const LOGIN_OF_ACCOUNT = 'login.account'
export const LOGIN_OF_ACCOUNT_AND_NETWORK = 'login.account-and-address'

/** The limit of failed codes of a user's second factor. */
export const SECOND_FACTOR_OF_ACCOUNT = 'second-factor.account'

/** The limit of failed codes of mails, of a user and of an address. */
export const MAIL_CODE_OF_ACCOUNT = 'mail-code.account'

/**
 * Returns the key of a limit for a subject, which is hashed, because an address that belongs to no user must not be
 * stored. It contains the factor, so that one statement can charge limits of several sizes.
 */
export function limitKey (name: string, subject: readonly string[], factor = 1): string {
  const hash = createHash('sha256').update(subject.join(' ')).digest('hex')
  return `${name}${factor === 1 ? '' : `*${factor}`} ${hash}`
}

// The time after the statement has locked the row. `now()` is the start of its transaction, which may be earlier than
// the time of the transaction that it has waited for.
const now = sql<Date>`clock_timestamp()`

const asked = (keys: string[], counts: number[]) =>
  sql<{ key: string, number: number }>`unnest(${keys}::text[], ${counts}::integer[])`
    .as<'asked'>(sql`asked(key, number)`)

/**
 * Charges attempts, as one statement, by the generic cell rate algorithm. A row contains the time when its whole limit
 * will be available again, and each attempt moves this time by one interval. Of several attempts with the same key, the
 * first ones are let through until the limit is reached. A rejected attempt is not charged. All nodes use the
 * database's clock.
 *
 * @returns for each attempt, in the same order, undefined if it may proceed, or `TooManyRequests`
 */
export async function charge (
  db: Database, limit: Limit, attempts: readonly Attempt[]
): Promise<(undefined | TooManyRequests)[]> {
  const granted = sql<number>`least(number, ${burstOf('asked.key', limit)})`
  const [burst, interval] = [burstOf('throttle.key', limit), intervalOf('throttle.key', limit)]
  const available =
    sql<number>`least(excluded.granted, greatest(0, ${burst} - ceil(${secondsTo(sql`throttle.free_at`)} * 1000000 / ${interval})))::integer`
  const rows = await db
    .insertInto('throttle')
    .columns(['key', 'free_at', 'granted'])
    // Every statement of this file locks rows in the order of the keys, so that they cannot cause a deadlock.
    .expression(({ selectFrom }) => selectFrom(asked(...count(attempts))).orderBy('key')
      .select([
        'key',
        sql<Date>`${now} + ${times(intervalOf('asked.key', limit), granted)}`.as('free_at'),
        granted.as('granted'),
      ]))
    .onConflict((conflict) => conflict.column('key').doUpdateSet({
      free_at: sql<Date>`greatest(throttle.free_at, ${now}) + ${times(interval, available)}`,
      granted: available,
    }))
    .returning(['key', 'granted', sql<number>`${secondsTo(sql`free_at`)}::float8`.as('seconds')])
    .execute()
  const rowOf = new Map(rows.map((row) => [row.key, row]))
  return attempts.map(({ key, factor }) => {
    const row = rowOf.get(key)!
    const { burst, interval } = sizeOf(limit, factor)
    return row.granted-- > 0 ? undefined : new TooManyRequests(row.seconds - (burst - 1) * interval / 1e6)
  })
}

/** Undoes the charge for attempts. Returns one `undefined` per attempt, for the batch. */
export async function refund (db: Database, limit: Limit, attempts: readonly Attempt[]): Promise<undefined[]> {
  const [keys, counts] = count(attempts)
  await replanned(db)
    .with('held', (cte) => cte.selectFrom('throttle').select('key').where('key', '=', sql<string>`any(${keys}::text[])`)
      .orderBy('key').forUpdate())
    .updateTable('throttle').from(asked(keys, counts))
    .set({ free_at: sql<Date>`throttle.free_at - ${times(intervalOf('throttle.key', limit), sql`asked.number`)}` })
    .whereRef('throttle.key', '=', 'asked.key')
    .where('throttle.key', '=', ({ selectFrom }) => anyOf(selectFrom('held').select('key')))
    .execute()
  return attempts.map(() => undefined)
}

/**
 * Makes limits wholly available again. When the transaction commits, nodes are notified, because they remember
 * attempts that they have rejected. Until then, attempts on these limits wait, so call it last in the transaction.
 */
export async function clearLimits (trx: Database, keys: readonly string[]): Promise<void> {
  const cleared = await replanned(trx)
    .with('held', (cte) => cte.selectFrom('throttle').select('key').where('key', '=', sql<string>`any(${keys}::text[])`)
      .orderBy('key').forUpdate())
    .deleteFrom('throttle').where('key', '=', ({ selectFrom }) => anyOf(selectFrom('held').select('key')))
    .returning('key').execute()
  if (cleared.length > 0) await sql`select pg_notify(${channelOf(schemaOf(trx), 'limits_cleared')}, '')`.execute(trx)
}

/**
 * Deletes at most `limit` rows: those whose limit is fully available again and, if there are more than `keep` rows,
 * those that will be available soonest. Thus a flood from ever new addresses cannot fill the table, and a client that
 * has used up its limit stays rejected: to displace its row, `keep` others would have to use up theirs. Returns the
 * number of deleted rows.
 */
export async function deleteFreeLimits (
  db: Database, { table = 'throttle', keep, limit }: { table?: 'throttle' | 'mail_limits', keep: number, limit: number }
): Promise<number> {
  const { numDeletedRows } = await replanned(db)
    .with('beyond', (cte) => cte.selectFrom(table).select('free_at').orderBy('free_at', 'desc').offset(keep).limit(1))
    .with('free', (cte) => cte.selectFrom(table).select('key')
      .where('free_at', '<=', ({ selectFrom }) =>
        selectFrom('beyond').select(sql<Date>`greatest(now(), max(free_at))`.as('until')))
      .orderBy('free_at').limit(limit).forUpdate().skipLocked())
    .deleteFrom(table).where('key', '=', ({ selectFrom }) => anyOf(selectFrom('free').select('key')))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

// Counts the attempts of each key, because one statement must not update a row twice.
function count (attempts: readonly Attempt[]): [keys: string[], counts: number[]] {
  const counts = new Map<string, number>()
  for (const { key } of attempts) counts.set(key, (counts.get(key) ?? 0) + 1)
  return [[...counts.keys()], [...counts.values()]]
}

const times = (interval: RawBuilder<number>, number: RawBuilder<unknown>) =>
  sql<string>`interval '1 microsecond' * (${interval} * ${number})`
const secondsTo = (time: RawBuilder<unknown>) => sql<number>`extract(epoch from ${time} - ${now})`
