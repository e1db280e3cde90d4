import { sql, type Expression } from 'kysely'
import type { Database } from '../../tables/index.ts'

// The time of the statement, because the transaction may have waited for the lock on the user.
const now = sql<Date>`clock_timestamp()`

/**
 * Replaces all recovery codes of a user. Call it in a transaction that has locked the user, and after the token that
 * undoes it is stored. Those that no token can restore are deleted.
 */
export async function replaceRecoveryCodes (
  trx: Database, userId: string, hashes: readonly Uint8Array[]
): Promise<void> {
  await trx.updateTable('recovery_codes').set({ replaced_at: now })
    .where('user_id', '=', userId).where('replaced_at', 'is', null).execute()
  await trx.deleteFrom('recovery_codes').where('user_id', '=', userId)
    .where(({ not, exists, selectFrom }) => not(exists(selectFrom('undo_links').select('undo_links.hash')
      .where('undo_links.user_id', '=', userId).where('undo_links.expires_at', '>', now)
      .whereRef('undo_links.created_at', '>', 'recovery_codes.created_at')
      .whereRef('undo_links.created_at', '<=', 'recovery_codes.replaced_at')))).execute()
  await trx.insertInto('recovery_codes').values(hashes.map((hash) => ({ user_id: userId, hash }))).execute()
}

/**
 * Makes the recovery codes of a user what they were at a time: deletes those that were created since, and restores
 * those that were replaced since and not used. Call it in a transaction that has locked the user.
 * @param time as PostgreSQL writes it
 */
export async function restoreRecoveryCodes (trx: Database, userId: string, time: string): Promise<void> {
  const since = sql<Date>`${time}::timestamptz`
  await trx.deleteFrom('recovery_codes').where('user_id', '=', userId).where('created_at', '>=', since).execute()
  await trx.updateTable('recovery_codes').set({ replaced_at: null })
    .where('user_id', '=', userId).where('replaced_at', '>=', since).execute()
}

/** Returns whether a user who has a second factor has a recovery code. */
export async function hasRecoveryCode (db: Database, userId: string, hash: Uint8Array): Promise<boolean> {
  const row = await db.selectFrom('recovery_codes').select('hash').where('user_id', '=', userId)
    .where('hash', '=', hash).where('replaced_at', 'is', null)
    .where(hasConfirmedTotp(db, userId)).executeTakeFirst()
  return row !== undefined
}

/**
 * Uses up a recovery code of a user who has a second factor. Of concurrent statements, on all nodes, one succeeds.
 * Returns whether this one did.
 */
export async function useRecoveryCode (db: Database, userId: string, hash: Uint8Array): Promise<boolean> {
  const row = await db.deleteFrom('recovery_codes').where('user_id', '=', userId).where('hash', '=', hash)
    .where('replaced_at', 'is', null).where(hasConfirmedTotp(db, userId)).returning('user_id').executeTakeFirst()
  return row !== undefined
}

const hasConfirmedTotp = (db: Database, userId: string): Expression<boolean> =>
  sql<boolean>`exists ${db.selectFrom('totp').select('totp.user_id')
    .where('totp.user_id', '=', userId).where('confirmed_at', 'is not', null)}`
