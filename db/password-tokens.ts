import { sql } from 'kysely'
import { WrongPassword } from '../schema/errors.ts'
import { invalidPasswordToken } from '../schema/password.ts'
import { insertAuditEntries, type NewAuditEntry } from './audit.ts'
import { clearLoginFailures } from './login-failures.ts'
import { isUuid } from './postgres.ts'
import { deleteSessionsOf } from './sessions.ts'
import type { Database, Row, UsersTable } from './tables.ts'

// Of a user's; a mail may come late, and its link is to serve even if another was asked for meanwhile.
const TOKENS_A_USER = 3

/** Whose password it is. */
export type Account = Row<UsersTable, 'id' | 'name' | 'email' | 'password_hash'>

const account = ['users.id', 'users.name', 'users.email', 'users.password_hash as passwordHash'] as const

/** What a password is changed against. */
export async function findAccount (db: Database, id: string): Promise<Account | undefined> {
  if (!isUuid(id)) return undefined
  return db.selectFrom('users').select(account).where('users.id', '=', id).executeTakeFirst()
}

/**
 * Keeps a token for so many seconds, and writes to the account log why it was made, in one transaction. The user's
 * oldest tokens go. Returns the address that the user has by now, which is where the token is to be sent, or undefined
 * if there is no such user: without one the same statements are sent, so that nobody tells by the time they take.
 */
export async function insertPasswordToken (
  db: Database, { hash, userId, seconds }: { hash: Uint8Array, userId: string, seconds: number }, note: NewAuditEntry, confirm?: () => Promise<void>
): Promise<string | undefined> {
  return db.transaction().execute(async (trx) => {
    // An address that changes from now on waits for the lock, and then deletes the token.
    const user = await lockUser(trx, userId)
    await trx.deleteFrom('password_tokens').where('hash', 'in', ({ selectFrom }) =>
      selectFrom('password_tokens').select('hash').where('user_id', '=', userId).orderBy('created_at', 'desc').offset(TOKENS_A_USER - 1)).execute()
    // By the clock, since a transaction that began earlier may have waited for the lock.
    const now = sql<Date>`clock_timestamp()`
    await trx.insertInto('password_tokens').columns(['hash', 'user_id', 'created_at', 'expires_at'])
      .expression(({ selectFrom, val }) => selectFrom('users').where('id', '=', userId)
        .select([val(hash).as('hash'), 'id', now.as('created'), sql<Date>`${now} + make_interval(secs => ${seconds})`.as('expires')]))
      .execute()
    await insertAuditEntries(trx, [note])
    await confirm?.()
    return user?.email
  })
}

/** Whose a token is that has not expired. Throws `InvalidInput`. */
export async function getTokenOwner (db: Database, hash: Uint8Array): Promise<Account> {
  return db.selectFrom('password_tokens').innerJoin('users', 'users.id', 'user_id').select(account)
    .where('hash', '=', hash).where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirstOrThrow(invalidPasswordToken)
}

/**
 * Sets the password of a token's owner, deletes their failed logins and all their tokens, and ends all their sessions.
 * Returns the ids of these sessions. To be called in a transaction. Throws `InvalidInput` if the token was used or has
 * expired meanwhile.
 */
export async function resetPassword (trx: Database, { hash, userId, passwordHash }: { hash: Uint8Array, userId: string, passwordHash: string }): Promise<string[]> {
  // Always the user first: of two tokens that are confirmed at once, or of one twice, one waits for the other.
  await lockUser(trx, userId)
  const spent = await trx.deleteFrom('password_tokens').where('hash', '=', hash).where('expires_at', '>', sql<Date>`now()`).returning('hash').execute()
  if (spent.length === 0) throw invalidPasswordToken()
  const { email } = await trx.updateTable('users').set({ password_hash: passwordHash }).where('id', '=', userId).returning('email').executeTakeFirstOrThrow()
  await clearLoginFailures(trx, email)
  await trx.deleteFrom('password_tokens').where('user_id', '=', userId).execute()
  return deleteSessionsOf(trx, userId)
}

/**
 * Puts a password in the place of the one that was checked; tokens and all sessions but one end: the ids of these. To
 * be called in a transaction. Throws `WrongPassword` where somebody else has set another one meanwhile.
 */
export async function changePassword (trx: Database, { userId, from, to, sessionId }: { userId: string, from: string, to: string, sessionId: string }): Promise<string[]> {
  await trx.updateTable('users').set({ password_hash: to }).where('id', '=', userId).where('password_hash', '=', from)
    .returning('id').executeTakeFirstOrThrow(() => new WrongPassword())
  await trx.deleteFrom('password_tokens').where('user_id', '=', userId).execute()
  return deleteSessionsOf(trx, userId, sessionId)
}

/** Deletes tokens that have expired: how many. */
export async function deleteExpiredPasswordTokens (db: Database, limit: number): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('password_tokens').where('hash', 'in', ({ selectFrom }) =>
    selectFrom('password_tokens').select('hash').where('expires_at', '<=', sql<Date>`now()`).limit(limit).forUpdate().skipLocked()).executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

async function lockUser (trx: Database, id: string): Promise<{ email: string } | undefined> {
  return trx.selectFrom('users').select('email').where('id', '=', id).forNoKeyUpdate().executeTakeFirst()
}
