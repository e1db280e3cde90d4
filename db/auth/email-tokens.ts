import { sql } from 'kysely'
import { EmailVerified, invalidMailToken } from '../../schema/auth/mail-token.ts'
import { EmailTaken } from '../../schema/users/user.ts'
import { deleteExpired } from '../batching/delete-expired.ts'
import { insertMail, type NewMail } from '../outbox/mails.ts'
import { storeUserEvent } from '../outbox/store.ts'
import { isEmailTaken } from '../driver/postgres.ts'
import { seconds } from '../sessions/sessions.ts'
import type { Database } from '../tables/index.ts'
import { insertUndoToken } from './undo-tokens.ts'
import { hasEmail } from '../users/user-keys.ts'
import { lockUser } from '../users/users.ts'
import { voidLinks } from './void-issued.ts'

// As many as links to set a password, and for the same reason.
const MAX_TOKENS_PER_USER = 3

/** A token to verify the address of a user. */
export interface NewEmailToken {
  hash: Uint8Array
  userId: string
  /** Seconds. */
  lifetime: number
  /** The change of the address that the token makes. Without it, the token verifies the current address. */
  change: EmailChange | undefined
}

/**
 * A new address, and the session in which it was requested. If the session ends, the address does not change any more.
 */
export interface EmailChange { email: string, sessionId: string }

/**
 * Stores a token, and the mail with it to the address. Deletes the user's oldest tokens, or this one if the limit of
 * mails is used up. Call it in a transaction. Returns whether there is such a user. Throws `EmailVerified` if the
 * address is the current one and verified.
 */
export async function insertEmailToken (
  trx: Database, { hash, userId, lifetime, change }: NewEmailToken, mail: NewMail
): Promise<boolean> {
  // A change of the address waits for this lock, and then deletes the token.
  const user = await lockUser(trx, userId)
  if (!user) return false
  if (!change && user.emailVerified) throw new EmailVerified()
  const email = change?.email ?? user.email
  const now = sql<Date>`clock_timestamp()`
  const expires = sql<Date>`${now} + ${seconds(lifetime)}`
  await trx.insertInto('email_tokens')
    .values({
      hash, user_id: userId, email, session_id: change?.sessionId ?? null, created_at: now, expires_at: expires,
    }).execute()
  // A token that nobody gets must not replace those that the owner has.
  const isSent = await insertMail(trx, mail, email, userId)
  await trx.deleteFrom('email_tokens').where('hash', 'in', ({ selectFrom }) => selectFrom('email_tokens').select('hash')
    .where('user_id', '=', userId)
    .$if(isSent, (query) => query.orderBy('created_at', 'desc').offset(MAX_TOKENS_PER_USER))
    .$if(!isSent, (query) => query.where('hash', '=', hash))).execute()
  return true
}

/**
 * Returns the id of a token's user. Throws `InvalidInput` if the token is unknown or has expired, or its session has
 * ended.
 */
export async function getEmailTokenOwner (db: Database, hash: Uint8Array): Promise<string> {
  return (await getEmailToken(db, hash)).userId
}

/**
 * Returns a token's user and address. Throws `InvalidInput` if the token is unknown or has expired, or its session has
 * ended.
 */
export async function getEmailToken (db: Database, hash: Uint8Array): Promise<{ userId: string, email: string }> {
  return db.selectFrom('email_tokens').select(['user_id as userId', 'email'])
    .where('hash', '=', hash).where('expires_at', '>', sql<Date>`now()`)
    .where(({ or, eb, selectFrom }) =>
      or([eb('session_id', 'is', null), eb('session_id', 'in', selectFrom('sessions').select('id'))]))
    .executeTakeFirstOrThrow(invalidMailToken)
}

/** What the use of a token has changed. */
export interface EmailVerification {
  /** Whether the user has another address now. */
  changed: boolean
  /** The former address, to which the mail about it is sent. */
  former: string
  /** Whether a link undoes the change. */
  isUndoable: boolean
}

/**
 * Gives the owner of a token the address of the token, marks it as verified, and deletes all such tokens of that
 * user. A change that somebody else has requested cannot be undone, and voids all links of the user. Call it in a
 * transaction. Throws `InvalidInput` if the token was used or has expired meanwhile, or if the address was changed
 * since, and `EmailTaken`.
 * @param undo the hash of a token that undoes a change of the address, if mails can be sent
 */
export async function verifyEmail (
  trx: Database, { hash, userId, undo }: { hash: Uint8Array, userId: string, undo: Uint8Array | null }
): Promise<EmailVerification> {
  const user = await lockUser(trx, userId)
  // A change of the address deletes all tokens (the trigger `mailbox_changed`), so if this one has another address than
  // the user, it was created to change it.
  const { email, session_id: sessionId } = await trx.deleteFrom('email_tokens')
    .where('hash', '=', hash).where('expires_at', '>', sql<Date>`clock_timestamp()`)
    .returning(['email', 'session_id']).executeTakeFirstOrThrow(invalidMailToken)
  const isOwn = sessionId === null || await getSessionOwner(trx, sessionId) === userId
  const changed = await trx.selectFrom('users').select('id')
    .where('id', '=', userId).where(({ not }) => not(hasEmail(email))).executeTakeFirst() !== undefined
  if (changed && !isOwn) await voidLinks(trx, userId)
  const isUndoable = changed && isOwn && undo !== null && await insertUndoToken(trx, undo, userId, { newEmail: email })
  if (changed) await setEmail(trx, userId, email)
  await trx.updateTable('users').set({ email_verified: true, updated_at: sql`now()` })
    .where('id', '=', userId).execute()
  await voidLinks(trx, userId, ['email_tokens'])
  await storeUserEvent(trx, 'user.updated', userId, userId)
  return { changed, former: user!.email, isUndoable }
}

// A user who ends a session may suspect a thief. From then on, a change that was requested in it must fail (contract
// 1.12).
async function getSessionOwner (trx: Database, id: string): Promise<string> {
  const { userId } = await trx.selectFrom('sessions').select('user_id as userId').where('id', '=', id).forKeyShare()
    .executeTakeFirstOrThrow(invalidMailToken)
  return userId
}

async function setEmail (trx: Database, userId: string, email: string): Promise<void> {
  try {
    await trx.updateTable('users').set({ email }).where('id', '=', userId).execute()
  } catch (error) {
    throw isEmailTaken(trx, error) ? new EmailTaken() : error
  }
}

/** Deletes at most `limit` expired tokens. Returns the number of deleted tokens. */
export const deleteExpiredEmailTokens = (db: Database, limit: number): Promise<number> =>
  deleteExpired(db, 'email_tokens', { column: 'expires_at', limit })
