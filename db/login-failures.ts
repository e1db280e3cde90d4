import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Database } from './tables.ts'

/** Returns the text that all spellings of an e-mail address have in common. */
export function foldEmail (email: string): string {
  // All that PostgreSQL's lower() makes one address is one here: by its rules, unlike JavaScript's, the capital I with a
  // dot is an i without another.
  return email.toLowerCase().replaceAll('\u0307', '')
}

/** What decides whether an account accepts a password from a network. */
export interface LoginState {
  /** Whether its owner has logged in from there before. */
  recognised: boolean
  /** The number of failed attempts since the last one that succeeded. */
  failures: number
}

/** Returns the state of an account, by one statement that takes the same time if there is no such account. */
export async function readLoginState (db: Database, { email, network }: { email: string, network: string }): Promise<LoginState> {
  return db.selectNoFrom(({ exists, selectFrom }) => [
    exists(selectFrom('users').innerJoin('recognised_networks', 'user_id', 'users.id').select('user_id')
      .where(sql<string>`lower(email)`, '=', sql<string>`lower(${email})`).where('network', '=', network)).$castTo<boolean>().as('recognised'),
    sql<number>`coalesce(${selectFrom('login_failures').select('count').where('key', '=', keyOf(email))}, 0)`.as('failures'),
  ]).executeTakeFirstOrThrow()
}

/** A failed attempt. */
export interface LoginFailure { readonly email: string }

/** Counts failed attempts, as one statement, whether or not there are such accounts. */
export async function countLoginFailures (db: Database, failures: readonly LoginFailure[]): Promise<undefined[]> {
  const keys = failures.map(({ email }) => keyOf(email).toString('hex'))
  await db.insertInto('login_failures').columns(['key', 'count'])
    // In the order of the keys: of two statements that lock the same rows, one waits for the other.
    .expression(({ selectFrom }) => selectFrom(sql<{ key: string }>`unnest(${keys}::text[])`.as<'failed'>(sql`failed(key)`))
      .select(({ fn }) => [sql<Buffer>`decode(key, 'hex')`.as('key'), sql<number>`${fn.countAll()}::integer`.as('count')])
      .groupBy('failed.key').orderBy('failed.key'))
    .onConflict((conflict) => conflict.column('key').doUpdateSet({
      count: sql<number>`login_failures.count + excluded.count`,
      last_failed_at: sql<Date>`now()`,
    })).execute()
  return failures.map(() => undefined)
}

/** Forgets the failed attempts of an account: one has succeeded, or the password was reset. */
export async function clearLoginFailures (db: Database, email: string): Promise<void> {
  await db.deleteFrom('login_failures').where('key', '=', keyOf(email)).execute()
}

/**
 * Deletes counts beyond `keep`, at most `limit` of them. The lowest go first, so that an account that is under attack is
 * not forgotten because of attempts on others. Returns the number of deleted counts.
 */
export async function deleteLowestLoginFailures (db: Database, { keep, limit }: { keep: number, limit: number }): Promise<number> {
  const { numDeletedRows } = await db
    .with('beyond', (cte) => cte.selectFrom('login_failures').select(['count', 'last_failed_at'])
      .orderBy('count', 'desc').orderBy('last_failed_at', 'desc').offset(keep).limit(1))
    .with('lowest', (cte) => cte.selectFrom('login_failures').select('key')
      .where(sql<boolean>`(count, last_failed_at) <= (select count, last_failed_at from beyond)`)
      .orderBy('count').orderBy('last_failed_at').limit(limit).forUpdate().skipLocked())
    .deleteFrom('login_failures').where('key', 'in', ({ selectFrom }) => selectFrom('lowest').select('key'))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** Deletes networks that nobody has logged in from for so many seconds, at most `limit`. Returns their number. */
export async function deleteUnusedNetworks (db: Database, { seconds, limit }: { seconds: number, limit: number }): Promise<number> {
  const { numDeletedRows } = await db
    .with('unused', (cte) => cte.selectFrom('recognised_networks').select(['user_id', 'network'])
      .where('last_used_at', '<', sql<Date>`now() - make_interval(secs => ${seconds})`).limit(limit).forUpdate().skipLocked())
    .deleteFrom('recognised_networks').using('unused')
    .whereRef('recognised_networks.user_id', '=', 'unused.user_id').whereRef('recognised_networks.network', '=', 'unused.network')
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

// Not the address itself, of which there may be none here.
const keyOf = (email: string): Buffer => createHash('sha256').update(foldEmail(email)).digest()
