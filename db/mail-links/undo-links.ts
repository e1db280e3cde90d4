import { sql, type ExpressionBuilder, type RawBuilder } from 'kysely'
import { invalidMailToken } from '../../schema/mail-links/mail-token.ts'
import { foldEmail } from '../../schema/strings/address.ts'
import { EmailTaken } from '../../schema/users/users.ts'
import { storeUserEvent } from '../outbox/store.ts'
import { isEmailTaken } from '../driver/postgres.ts'
import type { Database, Tables } from '../tables/index.ts'
import { restoreRecoveryCodes } from '../sign-in/totp/recovery-codes.ts'
import { hasEmail, isSameEmail } from '../users/user-keys.ts'
import { lockUser } from '../users/users.ts'
import { endedOf, repairAccount, type Repaired } from '../sign-in/repairs.ts'
import { UNDO_DAYS } from './kinds.ts'

// Each token means a mail to an address that may not belong to the user. Later changes get no token, rather than
// replacing the oldest one: a thief must not be able to get rid of the owner's link.
const MAX_TOKENS_PER_USER = 10

/** The columns to fill when a statement stores the state before its change. */
export const undoColumns = [
  'hash', 'user_id', 'email', 'email_verified', 'email_changed_at', 'password_hash', 'expires_at',
] as const

/** How long a change can be undone. */
export const undoPeriod = sql`make_interval(days => ${sql.lit(UNDO_DAYS)})`

/** The time at which a new token expires. */
export const undoExpiry = sql<Date>`now() + ${undoPeriod}`

/** Returns a condition: the user whose id is in this column has room for another token. */
export const hasUndoRoom = ({ selectFrom }: Pick<ExpressionBuilder<Tables, never>, 'selectFrom'>, column: string) =>
  sql<boolean>`${
  selectFrom('undo_links').select(({ fn }) => fn.countAll().as('count'))
    .where('user_id', '=', sql.ref<string>(column)).where('expires_at', '>', sql<Date>`now()`)
} < ${sql.lit(MAX_TOKENS_PER_USER)}`

/**
 * Returns a condition: a link that the user got can restore this address. Setting it back by hand then needs no link,
 * which would go to the thief whose change is taken back. The mail that says so is sent nevertheless, because it may
 * be the thief who sets it back.
 */
export const isRestorable = (
  { exists, selectFrom }: Pick<ExpressionBuilder<Tables, never>, 'exists' | 'selectFrom'>, column: string,
  email: RawBuilder<string>
) =>
  exists(selectFrom('undo_links').select('undo_links.hash')
    .where('undo_links.user_id', '=', sql.ref<string>(column)).where('undo_links.expires_at', '>', sql<Date>`now()`)
    .where(isSameEmail(sql.ref('undo_links.email'), email)))

/**
 * Stores a token to undo the change that follows in the same transaction, which has locked the user. Returns whether
 * it was stored: not if the user has no password, has too many tokens, or has one that restores the new address.
 * @param options.newEmail the new address, if that is what changes
 * @param options.hasPassword whether the user must have a password; by default, if the address does not change
 */
export async function insertUndoToken (
  trx: Database, hash: Uint8Array, userId: string,
  { newEmail, hasPassword = newEmail === undefined }: { newEmail?: string, hasPassword?: boolean } = {}
): Promise<boolean> {
  const row = await trx.insertInto('undo_links').columns(undoColumns)
    .expression((query) => query.selectFrom('users')
      .select([
        query.val(hash).as('hash'), 'id', 'email', 'email_verified', 'email_changed_at', 'password_hash',
        undoExpiry.as('expires'),
      ])
      .where('id', '=', userId).where(hasUndoRoom(query, 'users.id'))
      .$if(hasPassword, (rows) => rows.where('password_hash', 'is not', null))
      .$if(newEmail !== undefined, (rows) =>
        rows.where(query.not(isRestorable(query, 'users.id', sql`${newEmail}::text`)))))
    .returning('hash').executeTakeFirst()
  return row !== undefined
}

/**
 * Deletes the tokens that a mailbox outranks whose owner has just used a link: those that were stored after its first
 * one, which would undo their changes. What was stored before that one remains, since it may belong to the owner of
 * an account that a thief has moved to this mailbox.
 * @param own whether the tokens that were sent to the mailbox itself are deleted as well
 */
export async function deleteOutrankedTokens (
  trx: Database, userId: string, email: string, own: boolean
): Promise<void> {
  await trx.deleteFrom('undo_links').where('user_id', '=', userId)
    .where('position', '>=', ({ selectFrom }) => selectFrom('undo_links as own')
      .select(({ fn }) => fn.min('own.position').as('first'))
      .where('own.user_id', '=', userId).where('own.expires_at', '>', sql<Date>`now()`)
      .where(hasEmail(email, sql.ref('own.email'))))
    .$if(!own, (query) => query.where(({ not }) => not(hasEmail(email)))).execute()
}

/**
 * Returns the id of the user to whom a token belongs. Throws `InvalidInput` if there is no such token, it has expired
 * or the user is disabled.
 */
export async function getUndoTokenOwner (db: Database, hash: Uint8Array): Promise<string> {
  const { userId } = await db.selectFrom('undo_links')
    .innerJoin('users', 'users.id', 'user_id').select('user_id as userId')
    .where('hash', '=', hash).where('expires_at', '>', sql<Date>`now()`).where('disabled', '=', false)
    .executeTakeFirstOrThrow(invalidMailToken)
  return userId
}

/** What an undo has changed. */
export interface Undo {
  /** The ids of the sessions and API keys that it has ended. */
  ended: string[]
  /** Whether the address was restored. If not, another user has it. */
  restored: boolean
  /** The address that the user had until then, and the one that the user has now. */
  replaced: string
  email: string
  /** Whether the password was another one until then. */
  passwordChanged: boolean
  /** Each way to sign in that it has removed. */
  removed: Repaired['removed']
}

/**
 * Restores the address and the password that a user had before a change, and repairs the account, as `undo` says: the
 * ways to sign in and the recovery codes that were added since are removed. Deletes the token, the tokens of all later
 * changes, those of other mailboxes that are later than the first one of the restored address, and all other tokens of
 * mails to the user. If another user has the address meanwhile, everything else is done and the token stays valid, so
 * that it can be used again. Call it in a transaction. Throws `InvalidInput` if the token was used or has expired or
 * the user was disabled meanwhile, and `EmailTaken` if another user is taking the address at the moment: call it again
 * then.
 */
export async function undoChange (
  trx: Database, { hash, userId }: { hash: Uint8Array, userId: string }
): Promise<Undo> {
  const user = await lockUser(trx, userId)
  if (!user || user.disabled) throw invalidMailToken()
  const former = await trx.selectFrom('undo_links').selectAll().select(sql<string>`created_at::text`.as('time'))
    .where('hash', '=', hash)
    .where('expires_at', '>', sql<Date>`clock_timestamp()`).executeTakeFirstOrThrow(invalidMailToken)
  const other = await trx.selectFrom('users').select('id')
    .where(hasEmail(former.email)).where('id', '<>', userId).executeTakeFirst()
  const restored = other === undefined
  const { password } = await trx.selectFrom('users').select('password_hash as password').where('id', '=', userId)
    .executeTakeFirstOrThrow()
  await deleteOutrankedTokens(trx, userId, former.email, false)
  await trx.deleteFrom('undo_links').where('user_id', '=', userId)
    .where('position', restored ? '>=' : '>', former.position).execute()
  await restoreRecoveryCodes(trx, userId, former.time)
  const repaired = await repairAccount(
    trx, userId, 'undo', { actorId: userId, since: former.time, keepsUndoLinks: true }
  )
  await trx.updateTable('users')
    .set({ password_hash: former.password_hash, updated_at: sql`now()`, ...restored && { email: former.email } })
    .where('id', '=', userId).execute()
    .catch((error) => { throw isEmailTaken(trx, error) ? new EmailTaken() : error })
  // A statement of its own, because a trigger resets these columns when the address changes. An address that could not
  // be replaced is that of whoever has made the change, so it gets no links for a while.
  const sinceVerified = user.emailVerified && foldEmail(user.email) === foldEmail(former.email)
  await trx.updateTable('users').set(restored
    ? { email_verified: former.email_verified || sinceVerified, email_changed_at: former.email_changed_at }
    : { email_verified: false, email_changed_at: sql<Date>`now()` }).where('id', '=', userId).execute()
  await storeUserEvent(trx, 'password.changed', userId, userId)
  await storeUserEvent(trx, 'user.updated', userId, userId)
  return {
    ended: endedOf(repaired),
    restored,
    replaced: user.email,
    email: restored ? former.email : user.email,
    passwordChanged: password !== former.password_hash,
    removed: repaired.removed,
  }
}
