import { sql } from 'kysely'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import { invalidMailToken } from '../../schema/mail-links/mail-token.ts'
import { WrongPassword } from '../../schema/sign-in/passwords/passwords.ts'
import { ServiceUser, UserNotFound, type Role, type UserKind } from '../../schema/users/users.ts'
import { insertAuditEntries, type NewAuditEntry } from '../audit/audit.ts'
import { deleteSessionsOf } from '../access/ended-sessions.ts'
import { insertMail, type NewMail } from '../outbox/mails.ts'
import { storeUserEvent } from '../outbox/store.ts'
import { isUuid } from '../driver/postgres.ts'
import type { Row } from '../tables/row.ts'
import type { Database, UsersTable } from '../tables/index.ts'
import { isProven } from '../sign-in/proven-address.ts'
import { tablesVoidedByPassword, voidLinks } from './kinds.ts'
import { deleteOutrankedTokens, insertUndoToken } from './undo-links.ts'
import { lockUser } from '../users/users.ts'
import {
  endedOf, repairAccount, repairByMail, type Repaired, type RepairOptions,
} from '../sign-in/repairs.ts'

// More than one, because a mail may arrive late, and its link should work even if another mail was requested meanwhile.
const MAX_TOKENS_PER_USER = 3

/** A user with the password hash. */
export type Account = Row<UsersTable, 'id' | 'name' | 'email' | 'password_hash' | 'disabled'> & { kind: UserKind }

const account = [
  'users.id', 'users.name', 'users.email', 'users.password_hash as passwordHash', 'users.disabled',
  'users.account_kind as kind',
] as const

/** A token of a link to set a password. */
export interface NewToken {
  hash: Uint8Array
  userId: string
  seconds: number
  onlyIfProven: boolean
  /** Who invites the user: null for the operator or the host. Absent if it is no invitation. */
  invitedBy?: string | null
}

/** Returns the user whose password is to be changed, or undefined if there is no user with that id. */
export async function findAccount (db: Database, id: string): Promise<Account | undefined> {
  if (!isUuid(id)) return undefined
  return db.selectFrom('users').select(account).where('users.id', '=', id).executeTakeFirst()
}

/**
 * Stores a token that expires after `seconds`, the entry `note` of the account log, and the mail with the token to the
 * user's current address, in a transaction. Deletes the user's oldest tokens, or this one if the limit of mails is
 * used up. If there is no such user, the user is disabled or a service, or the address may not get a token, it sends
 * the same statements and stores a mail to nobody, so that neither the response time nor the load reveals it.
 * @param onlyIfProven whether no token is stored for an address that was changed in the last seven days and is not
 *   verified (`isProven`)
 */
export async function insertPasswordToken (
  trx: Database, { hash, userId, seconds, onlyIfProven, invitedBy }: NewToken, note: NewAuditEntry, mail: NewMail
): Promise<void> {
  // A change of the address or disabling the user waits for this lock, and then deletes the token.
  const user = await lockUser(trx, userId)
  // Not `now()`, which is the start of the transaction: it may have waited for the lock since.
  const now = sql<Date>`clock_timestamp()`
  const stored = await trx.insertInto('password_links')
    .columns(['hash', 'user_id', 'created_at', 'expires_at', 'invitation', 'invited_by'])
    .expression(({ selectFrom, val }) => selectFrom('users').where('id', '=', userId).where('disabled', '=', false)
      .where('account_kind', '=', 'person')
      .$if(onlyIfProven, (query) => query.where(isProven))
      .select([
        val(hash).as('hash'), 'id', now.as('created'),
        sql<Date>`${now} + make_interval(secs => ${seconds})`.as('expires'),
        val(invitedBy !== undefined).as('invitation'),
        sql<string | null>`${invitedBy ?? null}::uuid`.as('inviter'),
      ]))
    .returning('hash').execute()
  await insertAuditEntries(trx, [note])
  const isSent = await insertMail(trx, mail, stored.length > 0 ? user!.email : null, user ? userId : null)
  // A token that nobody gets must not replace those that the owner has.
  await trx.deleteFrom('password_links')
    .where('hash', 'in', ({ selectFrom }) => selectFrom('password_links').select('hash')
      .where('user_id', '=', userId)
      .$if(isSent, (query) => query.orderBy('created_at', 'desc').offset(MAX_TOKENS_PER_USER))
      .$if(!isSent, (query) => query.where('hash', '=', hash))).execute()
}

/** The owner of a token, and how the token came about. */
export interface TokenOwner extends Account {
  role: Role
  isInvitation: boolean
  /** Who has invited the owner, as far as it was a user who is still there. */
  invitedBy: { id: string, name: string } | null
}

/**
 * Returns the owner of a token that has not expired. Throws `InvalidInput` if there is no such token, or its owner is
 * disabled.
 */
export async function getTokenOwner (db: Database, hash: Uint8Array): Promise<TokenOwner> {
  const { inviterId, inviterName, ...owner } = await db.selectFrom('password_links')
    .innerJoin('users', 'users.id', 'user_id').leftJoin('users as inviters', 'inviters.id', 'invited_by')
    .select(account)
    .select([
      'users.role', 'password_links.invitation as isInvitation', 'inviters.id as inviterId', 'inviters.name as inviterName',
    ])
    .where('password_links.hash', '=', hash).where('expires_at', '>', sql<Date>`now()`)
    .where('users.disabled', '=', false)
    .executeTakeFirstOrThrow(invalidMailToken)
  return { ...owner, invitedBy: inviterId === null ? null : { id: inviterId, name: inviterName! } }
}

/** What a new password has changed. */
export interface PasswordChange {
  /** The ids of the sessions and API keys that it has ended. */
  ended: string[]
  /** The user's address, to which the mail about it is sent. */
  email: string
  /** Whether a link undoes it. */
  isUndoable: boolean
  /** Each way to sign in that it has removed. */
  removed: Repaired['removed']
}

/**
 * Sets the password of a token's owner, whose address is verified by this. Repairs the account, as `mail-reset` or, if
 * nobody has verified the address before, as `first-proof` says, but keeps the tokens that may undo what was done
 * before the address was theirs (`deleteOutrankedTokens`). Call it in a transaction. Throws `InvalidInput` if the token
 * was used or has expired, or the user was disabled meanwhile.
 * @param undo the hash of a token that undoes it, if mails can be sent
 * @param keep the ids of ways to sign in that stay although they are recent
 */
export async function resetPassword (
  trx: Database, { hash, userId, passwordHash, undo, keep }: {
    hash: Uint8Array, userId: string, passwordHash: string, undo: Uint8Array | undefined, keep: readonly string[]
  }
): Promise<PasswordChange> {
  // The user is always locked first, so that concurrent confirmations, of the same token or of two tokens, run one
  // after the other.
  const user = await lockUser(trx, userId)
  if (!user || user.disabled) throw invalidMailToken()
  const spent = await trx.deleteFrom('password_links').where('hash', '=', hash)
    .where('expires_at', '>', sql<Date>`now()`).returning('hash').execute()
  if (spent.length === 0) throw invalidMailToken()
  await deleteOutrankedTokens(trx, userId, user.email, true)
  const isUndoable = undo !== undefined && await insertUndoToken(trx, undo, userId)
  await trx.updateTable('users')
    .set({
      password_hash: passwordHash,
      email_verified: true,
      updated_at: sql`case when email_verified then updated_at else now() end`,
    })
    .where('id', '=', userId).execute()
  const repaired = await repairAccount(
    trx, userId, repairByMail(user.emailVerified), { actorId: userId, keep, keepsUndoLinks: true }
  )
  await storeUserEvent(trx, 'password.changed', userId, userId)
  if (!user.emailVerified) await storeUserEvent(trx, 'user.updated', userId, userId)
  return { ended: endedOf(repaired), email: user.email, isUndoable, removed: repaired.removed }
}

/**
 * Replaces the password hash `from`, against which the current password was checked, with `to`. Deletes the user's
 * tokens of links that set a password, verify an address or log in, and ends all sessions except `sessionId`. Call it
 * in a transaction. Throws `WrongPassword` if the password was changed meanwhile, and `InvalidToken` if the session has
 * ended, as it does when an earlier change is undone.
 * @param undo the hash of a token that undoes it, if mails can be sent
 */
export async function changePassword (
  trx: Database, { userId, from, to, sessionId, undo }: {
    userId: string, from: string, to: string, sessionId: string, undo: Uint8Array | undefined
  }
): Promise<PasswordChange> {
  const user = await lockUser(trx, userId)
  // Before the password is compared: a request that has changed it has usually ended the session as well.
  await trx.selectFrom('sessions').select('id')
    .where('id', '=', sessionId).executeTakeFirstOrThrow(() => new InvalidToken())
  const isUndoable = undo !== undefined && await insertUndoToken(trx, undo, userId)
  await trx.updateTable('users').set({ password_hash: to }).where('id', '=', userId).where('password_hash', '=', from)
    .returning('id').executeTakeFirstOrThrow(() => new WrongPassword())
  await voidLinks(trx, userId, tablesVoidedByPassword)
  const ended = await deleteSessionsOf(trx, userId, userId, sessionId)
  await storeUserEvent(trx, 'password.changed', userId, userId)
  return { ended, email: user!.email, isUndoable, removed: [] }
}

/**
 * Sets the password of a user who is neither asked for the current one nor has a link, and repairs the account, as
 * `operator-reset` says. Call it in a transaction. Returns the user's address and what has ended. Throws
 * `UserNotFound`, and `ServiceUser`, who has no password.
 * @param decisions what happens to the ways to sign in, if something else
 */
export async function replacePassword (
  trx: Database,
  { userId, passwordHash, actorId, decisions = {} }:
  { userId: string, passwordHash: string } & Pick<RepairOptions, 'actorId' | 'decisions'>
): Promise<{ email: string, repaired: Repaired }> {
  const user = await lockUser(trx, userId)
  if (!user) throw new UserNotFound()
  if (user.kind === 'service') throw new ServiceUser()
  await trx.updateTable('users').set({ password_hash: passwordHash }).where('id', '=', userId).execute()
  const repaired = await repairAccount(trx, userId, 'operator-reset', { actorId, decisions })
  await storeUserEvent(trx, 'password.changed', userId, actorId)
  return { email: user.email, repaired }
}
