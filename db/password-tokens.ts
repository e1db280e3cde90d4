import { sql } from 'kysely'
import { invalidPasswordToken, WrongPassword } from '../schema/password.ts'
import { insertAuditEntries, type NewAuditEntry } from './audit.ts'
import { clearLoginFailures } from './login-failures.ts'
import { isUuid } from './postgres.ts'
import { deleteSessionsOf } from './sessions.ts'
import type { Row } from './row.ts'
import type { Database, UsersTable } from './tables.ts'

// More than one, because a mail may arrive late, and its link should work even if another mail was requested meanwhile.
const TOKENS_A_USER = 3

/** A user with the password hash. */
export type Account = Row<UsersTable, 'id' | 'name' | 'email' | 'password_hash' | 'disabled'>

const account = ['users.id', 'users.name', 'users.email', 'users.password_hash as passwordHash', 'users.disabled'] as const

/** Returns the user whose password is to be changed, or undefined if there is no user with that id. */
export async function findAccount (db: Database, id: string): Promise<Account | undefined> {
  if (!isUuid(id)) return undefined
  return db.selectFrom('users').select(account).where('users.id', '=', id).executeTakeFirst()
}

/**
 * Stores a token that expires after `seconds`, and the entry `note` of the account log, in one transaction. Deletes the user's
 * oldest tokens. Returns the user's current e-mail address, to which the token is to be sent, or undefined if there is no such
 * user or the user is disabled. In that case it sends the same statements, so that the response time does not reveal it.
 * @param confirm runs before the commit, and throws if the token must not be stored
 */
export async function insertPasswordToken (
  db: Database, { hash, userId, seconds }: { hash: Uint8Array, userId: string, seconds: number }, note: NewAuditEntry, confirm?: () => Promise<void>
): Promise<string | undefined> {
  return db.transaction().execute(async (trx) => {
    // A change of the address or disabling the user waits for this lock, and then deletes the token.
    const user = await lockUser(trx, userId)
    await trx.deleteFrom('password_tokens').where('hash', 'in', ({ selectFrom }) =>
      selectFrom('password_tokens').select('hash').where('user_id', '=', userId).orderBy('created_at', 'desc').offset(TOKENS_A_USER - 1)).execute()
    // Not `now()`, which is the start of the transaction: it may have waited for the lock since.
    const now = sql<Date>`clock_timestamp()`
    await trx.insertInto('password_tokens').columns(['hash', 'user_id', 'created_at', 'expires_at'])
      .expression(({ selectFrom, val }) => selectFrom('users').where('id', '=', userId).where('disabled', '=', false)
        .select([val(hash).as('hash'), 'id', now.as('created'), sql<Date>`${now} + make_interval(secs => ${seconds})`.as('expires')]))
      .execute()
    await insertAuditEntries(trx, [note])
    await confirm?.()
    return user?.email
  })
}

/** Returns the owner of a token that has not expired. Throws `InvalidInput` if there is no such token, or its owner is disabled. */
export async function getTokenOwner (db: Database, hash: Uint8Array): Promise<Account> {
  return db.selectFrom('password_tokens').innerJoin('users', 'users.id', 'user_id').select(account)
    .where('hash', '=', hash).where('expires_at', '>', sql<Date>`now()`).where('users.disabled', '=', false)
    .executeTakeFirstOrThrow(invalidPasswordToken)
}

/**
 * Sets the password of a token's owner, deletes the count of failed logins and all tokens of that user, and ends all their
 * sessions. Returns the ids of these sessions. Call it in a transaction. Throws `InvalidInput` if the token was used or has expired,
 * or the user was disabled meanwhile.
 */
export async function resetPassword (trx: Database, { hash, userId, passwordHash }: { hash: Uint8Array, userId: string, passwordHash: string }): Promise<string[]> {
  // The user is always locked first, so that concurrent confirmations, of the same token or of two tokens, run one after the other.
  if (!await lockUser(trx, userId)) throw invalidPasswordToken()
  const spent = await trx.deleteFrom('password_tokens').where('hash', '=', hash).where('expires_at', '>', sql<Date>`now()`).returning('hash').execute()
  if (spent.length === 0) throw invalidPasswordToken()
  const { email } = await trx.updateTable('users').set({ password_hash: passwordHash }).where('id', '=', userId).returning('email').executeTakeFirstOrThrow()
  await clearLoginFailures(trx, email)
  await trx.deleteFrom('password_tokens').where('user_id', '=', userId).execute()
  return deleteSessionsOf(trx, userId)
}

/**
 * Replaces the password hash `from`, against which the current password was checked, with `to`. Deletes the user's password tokens
 * and ends all sessions except `sessionId`. Returns the ids of the ended sessions. Call it in a transaction. Throws `WrongPassword`
 * if the password was changed meanwhile.
 */
export async function changePassword (trx: Database, { userId, from, to, sessionId }: { userId: string, from: string, to: string, sessionId: string }): Promise<string[]> {
  await trx.updateTable('users').set({ password_hash: to }).where('id', '=', userId).where('password_hash', '=', from)
    .returning('id').executeTakeFirstOrThrow(() => new WrongPassword())
  await trx.deleteFrom('password_tokens').where('user_id', '=', userId).execute()
  return deleteSessionsOf(trx, userId, sessionId)
}

/** Deletes at most `limit` expired tokens. Returns the number of deleted tokens. */
export async function deleteExpiredPasswordTokens (db: Database, limit: number): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('password_tokens').where('hash', 'in', ({ selectFrom }) =>
    selectFrom('password_tokens').select('hash').where('expires_at', '<=', sql<Date>`now()`).limit(limit).forUpdate().skipLocked()).executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** Locks a user until the transaction ends. Returns undefined if there is no such user or the user is disabled. */
async function lockUser (trx: Database, id: string): Promise<{ email: string } | undefined> {
  return trx.selectFrom('users').select('email').where('id', '=', id).where('disabled', '=', false).forNoKeyUpdate().executeTakeFirst()
}
