import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { foldEmail } from '../../schema/strings/address.ts'
import { anyOf } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import type { Database } from '../tables/index.ts'
import { hasEmail } from '../users/user-keys.ts'

/** The state that decides whether an account accepts a password from a network. */
export interface LoginState {
  /** Whether the network is recognised: the owner of the account has logged in from it. */
  recognised: boolean
  /** The number of failed attempts since the last one that succeeded. */
  failures: number
}

/** Returns the state of an account, with one statement that takes the same time if the account does not exist. */
export async function readLoginState (
  db: Database, { email, network }: { email: string, network: string }
): Promise<LoginState> {
  return db.selectNoFrom(({ exists, selectFrom }) => [
    exists(selectFrom('users').innerJoin('recognised_networks', 'user_id', 'users.id').select('user_id')
      .where(hasEmail(email)).where('recognised_networks.network', '=', network)).$castTo<boolean>().as('recognised'),
    sql<number>`coalesce(${selectFrom('login_failures').select('count').where('key', '=', hashAddress(email))}, 0)`
      .as('failures'),
  ]).executeTakeFirstOrThrow()
}

/** A failed attempt. */
export interface LoginFailure { readonly email: string }

/**
 * Counts failed attempts, as one statement, whether or not the accounts exist. Returns one `undefined` per attempt, for
 * the batch.
 */
export async function countLoginFailures (db: Database, failures: readonly LoginFailure[]): Promise<undefined[]> {
  const keys = failures.map(({ email }) => hashAddress(email).toString('hex'))
  await db.insertInto('login_failures').columns(['key', 'count'])
    // Rows are locked in the order of the keys, so that two statements with the same keys cannot cause a deadlock.
    .expression(({ selectFrom }) => selectFrom(
      sql<{ key: string }>`unnest(${keys}::text[])`.as<'failed'>(sql`failed(key)`)
    )
      .select(({ fn }) => [
        sql<Buffer>`decode(key, 'hex')`.as('key'), sql<number>`${fn.countAll()}::integer`.as('count'),
      ])
      .groupBy('failed.key').orderBy('failed.key'))
    .onConflict((conflict) => conflict.column('key').doUpdateSet({
      count: sql<number>`login_failures.count + excluded.count`,
      last_failed_at: sql<Date>`now()`,
    })).execute()
  return failures.map(() => undefined)
}

/** Deletes the count of failed attempts of an account, because a login has succeeded or the password was reset. */
export async function clearLoginFailures (db: Database, email: string): Promise<void> {
  await db.deleteFrom('login_failures').where('key', '=', hashAddress(email)).execute()
}

/**
 * Keeps the `keep` highest counts and deletes at most `limit` of the others, lowest first. Thus attempts on other
 * accounts cannot displace the count of an account that is under attack. Returns the number of deleted counts.
 */
export async function deleteLowestLoginFailures (
  db: Database, { keep, limit }: { keep: number, limit: number }
): Promise<number> {
  const { numDeletedRows } = await replanned(db)
    .with('beyond', (cte) => cte.selectFrom('login_failures').select(['count', 'last_failed_at'])
      .orderBy('count', 'desc').orderBy('last_failed_at', 'desc').offset(keep).limit(1))
    .with('lowest', (cte) => cte.selectFrom('login_failures').select('key')
      .where(sql<boolean>`(count, last_failed_at) <= (select count, last_failed_at from beyond)`)
      .orderBy('count').orderBy('last_failed_at').limit(limit).forUpdate().skipLocked())
    .deleteFrom('login_failures').where('key', '=', ({ selectFrom }) => anyOf(selectFrom('lowest').select('key')))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** Returns the hash of an address regardless of case. It may belong to no user, and must not be stored then. */
export const hashAddress = (email: string): Buffer => createHash('sha256').update(foldEmail(email)).digest()
