import { sql } from 'kysely'
import { EmailVerified, invalidMailToken, OwnSessionRequired } from '../../schema/mail-links/mail-token.ts'
import { PasswordRequired } from '../../schema/sign-in/passwords/passwords.ts'
import { EmailTaken } from '../../schema/users/users.ts'
import { insertMail, type NewMail } from '../outbox/mails.ts'
import { storeUserEvent } from '../outbox/store.ts'
import { isEmailTaken } from '../driver/postgres.ts'
import { seconds } from '../access/sessions.ts'
import type { Database } from '../tables/index.ts'
import { holdSession } from '../access/live-sessions.ts'
import { repairAccount, type Repaired } from '../sign-in/repairs.ts'
import { voidLinks } from './kinds.ts'
import { deleteOutrankedTokens, insertUndoToken } from './undo-links.ts'
import { hasEmail, isSameEmail } from '../users/user-keys.ts'
import { lockUser } from '../users/users.ts'

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
  await trx.insertInto('verification_links')
    .values({
      hash, user_id: userId, email, session_id: change?.sessionId ?? null, created_at: now, expires_at: expires,
    }).execute()
  // A token that nobody gets must not replace those that the owner has.
  const isSent = await insertMail(trx, mail, email, userId)
  await trx.deleteFrom('verification_links').where('hash', 'in', ({ selectFrom }) => selectFrom('verification_links').select('hash')
    .where('user_id', '=', userId)
    .$if(isSent, (query) => query.orderBy('created_at', 'desc').offset(MAX_TOKENS_PER_USER))
    .$if(!isSent, (query) => query.where('hash', '=', hash))).execute()
  return true
}

/** What a client that presents a token must add: nothing, a new password, or a session of the user. */
export type Needed = 'nothing' | 'password' | 'session'

// Whoever opens the link reads the mailbox, but need not be whoever has the account: a stranger may have registered the
// address of somebody else. With a session of the user, it is the same person. Without one, an account whose address
// nobody has proved is taken over, with a new password; one that has an owner does not change its address.
function neededBy (
  { userId, isProved, changes }: { userId: string, isProved: boolean, changes: boolean }, session: SessionOf | undefined
): Needed {
  if (session?.userId === userId || (isProved && !changes)) return 'nothing'
  return isProved ? 'session' : 'password'
}

/** A session that a client has. */
export interface SessionOf { userId: string, sessionId: string }

/** A token that has neither been used nor expired. */
export interface OpenedEmailToken {
  userId: string
  name: string
  /** The address that is proved. */
  email: string
  needed: Needed
}

/**
 * Returns what the token of a link proves. Throws `InvalidInput` if the token is unknown or has expired, or its session
 * has ended.
 * @param session that of the client, if it has one
 */
export async function openEmailToken (
  db: Database, hash: Uint8Array, session?: SessionOf
): Promise<OpenedEmailToken> {
  const { changes, isProved, ...opened } = await db.selectFrom('verification_links')
    .innerJoin('users', 'users.id', 'verification_links.user_id')
    .select([
      'users.id as userId', 'users.name', 'verification_links.email', 'users.email_verified as isProved',
      sql<boolean>`not ${isSameEmail(sql.ref('users.email'), sql.ref('verification_links.email'))}`.as('changes'),
    ])
    .where('hash', '=', hash).where('verification_links.expires_at', '>', sql<Date>`now()`)
    .where(({ or, eb, selectFrom }) =>
      or([eb('session_id', 'is', null), eb('session_id', 'in', selectFrom('sessions').select('sessions.id'))]))
    .executeTakeFirstOrThrow(invalidMailToken)
  return { ...opened, needed: neededBy({ userId: opened.userId, isProved, changes }, session) }
}

/** What the use of a token has changed. */
export interface EmailVerification {
  /** Whether the user has another address now. */
  changed: boolean
  /** The former address, to which the mail about it is sent. */
  former: string
  /** Whether a link undoes the change. */
  isUndoable: boolean
  /** What was removed, if a client without a session of the user was the first to prove the address. */
  repaired: Repaired | undefined
}

/**
 * Gives the owner of a token the address of the token, marks it as verified, and deletes all such tokens of that
 * user. A change that somebody else has requested cannot be undone, and voids all links of the user. With a password,
 * which a client without a session of the user sends, it repairs the account, as `first-proof` says, and sets that
 * password. Call it in a transaction. Throws `InvalidInput` if the token was used or has expired meanwhile, or if the
 * address was changed since, `PasswordRequired`, `OwnSessionRequired`, and `EmailTaken`.
 * @param session that of the client
 * @param undo the hash of a token that undoes a change of the address, if mails can be sent
 */
export async function verifyEmail (
  trx: Database, { hash, userId, session, passwordHash, undo }: {
    hash: Uint8Array
    userId: string
    session: SessionOf | undefined
    passwordHash: string | undefined
    undo: Uint8Array | null
  }
): Promise<EmailVerification> {
  const user = await lockUser(trx, userId)
  // A change of the address deletes all tokens (the trigger `mailbox_changed`), so if this one has another address than
  // the user, it was created to change it.
  const { email, session_id: sessionId } = await trx.deleteFrom('verification_links')
    .where('hash', '=', hash).where('expires_at', '>', sql<Date>`clock_timestamp()`)
    .returning(['email', 'session_id']).executeTakeFirstOrThrow(invalidMailToken)
  const isOwn = sessionId === null || await getSessionOwner(trx, sessionId) === userId
  const { changed } = await trx.selectFrom('users').select(sql<boolean>`not ${hasEmail(email)}`.as('changed'))
    .where('id', '=', userId).executeTakeFirstOrThrow(invalidMailToken)
  const isHeld = session !== undefined && await holdSession(trx, session)
  const needed = neededBy({ userId, isProved: user!.emailVerified, changes: changed }, isHeld ? session : undefined)
  if (needed === 'session') throw new OwnSessionRequired()
  if (needed === 'password' && passwordHash === undefined) throw new PasswordRequired()
  const adopts = needed === 'password'
  // What a thief has moved to this mailbox, its owner can still take back.
  if (adopts) await deleteOutrankedTokens(trx, userId, email, true)
  else if (changed && !isOwn) await voidLinks(trx, userId)
  const isUndoable = changed && isOwn && !adopts && undo !== null &&
    await insertUndoToken(trx, undo, userId, { newEmail: email })
  if (changed) await setEmail(trx, userId, email)
  const repaired = adopts
    ? await repairAccount(trx, userId, 'first-proof', { actorId: userId, keepsUndoLinks: true })
    : undefined
  await trx.updateTable('users')
    .set({ email_verified: true, updated_at: sql`now()`, ...adopts && { password_hash: passwordHash! } })
    .where('id', '=', userId).execute()
  await voidLinks(trx, userId, ['verification_links'])
  if (adopts) await storeUserEvent(trx, 'password.changed', userId, userId)
  await storeUserEvent(trx, 'user.updated', userId, userId)
  return { changed, former: user!.email, isUndoable, repaired }
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
