import { sql, type Expression } from 'kysely'
import type { Database } from '../tables/index.ts'

/** Replaces all recovery codes of a user. Call it in a transaction that has locked the user. */
export async function replaceRecoveryCodes (
  trx: Database, userId: string, hashes: readonly Uint8Array[]
): Promise<void> {
  await trx.deleteFrom('recovery_codes').where('user_id', '=', userId).execute()
  await trx.insertInto('recovery_codes').values(hashes.map((hash) => ({ user_id: userId, hash }))).execute()
}

/** Returns whether a user who has a second factor has a recovery code. */
export async function hasRecoveryCode (db: Database, userId: string, hash: Uint8Array): Promise<boolean> {
  const row = await db.selectFrom('recovery_codes').select('hash').where('user_id', '=', userId)
    .where('hash', '=', hash)
    .where(hasConfirmedTotp(db, userId)).executeTakeFirst()
  return row !== undefined
}

/**
 * Uses up a recovery code of a user who has a second factor. Of concurrent statements, on all nodes, one succeeds.
 * Returns whether this one did.
 */
export async function useRecoveryCode (db: Database, userId: string, hash: Uint8Array): Promise<boolean> {
  const row = await db.deleteFrom('recovery_codes').where('user_id', '=', userId).where('hash', '=', hash)
    .where(hasConfirmedTotp(db, userId)).returning('user_id').executeTakeFirst()
  return row !== undefined
}

const hasConfirmedTotp = (db: Database, userId: string): Expression<boolean> =>
  sql<boolean>`exists ${db.selectFrom('totp').select('totp.user_id')
    .where('totp.user_id', '=', userId).where('confirmed_at', 'is not', null)}`
