import { sql } from 'kysely'
import { EmailVerified } from '../schema/email-verification.ts'
import { invalidMailToken } from '../schema/mail-token.ts'
import { seconds } from './sessions.ts'
import type { Database } from './tables.ts'
import { lockUser } from './users.ts'

// As many as links to set a password, and for the same reason.
const TOKENS_A_USER = 3

/**
 * Stores a token to verify a user's current address, which expires after `lifetime` seconds. Deletes the user's oldest tokens.
 * Returns the address, to which the token is to be sent, or undefined if there is no such user. Throws `EmailVerified`.
 * @param confirm runs before the commit, and throws if the token must not be stored
 */
export async function insertEmailToken (
  db: Database, { hash, userId, lifetime }: { hash: Uint8Array, userId: string, lifetime: number }, confirm: () => Promise<void>
): Promise<string | undefined> {
  return db.transaction().execute(async (trx) => {
    // A change of the address waits for this lock, and then deletes the token.
    const user = await lockUser(trx, userId)
    if (!user) return undefined
    if (user.emailVerified) throw new EmailVerified()
    await trx.deleteFrom('email_tokens').where('hash', 'in', ({ selectFrom }) =>
      selectFrom('email_tokens').select('hash').where('user_id', '=', userId).orderBy('created_at', 'desc').offset(TOKENS_A_USER - 1)).execute()
    const now = sql<Date>`clock_timestamp()`
    await trx.insertInto('email_tokens')
      .values({ hash, user_id: userId, email: user.email, created_at: now, expires_at: sql<Date>`${now} + ${seconds(lifetime)}` }).execute()
    await confirm()
    return user.email
  })
}

/** Returns the id of the user to whom a token belongs. Throws `InvalidInput` if there is no such token or it has expired. */
export async function getEmailTokenOwner (db: Database, hash: Uint8Array): Promise<string> {
  const { userId } = await db.selectFrom('email_tokens').select('user_id as userId')
    .where('hash', '=', hash).where('expires_at', '>', sql<Date>`now()`).executeTakeFirstOrThrow(invalidMailToken)
  return userId
}

/**
 * Marks the address of a token's owner as verified and deletes all such tokens of that user. Call it in a transaction. Throws
 * `InvalidInput` if the token was used or has expired meanwhile, or if the user has another address by now.
 */
export async function verifyEmail (trx: Database, { hash, userId }: { hash: Uint8Array, userId: string }): Promise<void> {
  const user = await lockUser(trx, userId)
  const used = await trx.deleteFrom('email_tokens').where('hash', '=', hash)
    .where('expires_at', '>', sql<Date>`clock_timestamp()`)
    .where(sql<string>`lower(email)`, '=', sql<string>`lower(${user?.email ?? ''})`)
    .returning('hash').execute()
  if (used.length === 0) throw invalidMailToken()
  await trx.updateTable('users').set({ email_verified: true, updated_at: sql`now()` }).where('id', '=', userId).execute()
  await trx.deleteFrom('email_tokens').where('user_id', '=', userId).execute()
}

/** Deletes at most `limit` expired tokens. Returns the number of deleted tokens. */
export async function deleteExpiredEmailTokens (db: Database, limit: number): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('email_tokens').where('hash', 'in', ({ selectFrom }) =>
    selectFrom('email_tokens').select('hash').where('expires_at', '<=', sql<Date>`now()`).limit(limit).forUpdate().skipLocked()).executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
