import { sql } from 'kysely'
import { UserNotFound } from '../../schema/users/users.ts'
import { storeUserEvent } from '../outbox/store.ts'
import { repairAccount, type Repaired } from './repairs.ts'
import type { Database } from '../tables/index.ts'

/** What was removed from an account that nobody had verified. */
export interface Adoption {
  email: string
  hadPassword: boolean
  repaired: Repaired
}

/**
 * Marks the address of a user as verified, for somebody who has just proved to read its mailbox. If nobody had verified
 * it before, somebody else may have prepared the account for its owner to use (Sudhodanan and Paverd, "Pre-hijacked
 * accounts", 2022). So everything is removed that would let them in again: the password, the passkeys, the identities,
 * the authenticator app with its recovery codes, the API keys, all sessions, links, and changes that wait for a link.
 * Call it in a transaction, and before a session of the owner is stored. Returns undefined if the address was verified
 * already: then nothing changes. Throws `UserNotFound`.
 */
export async function adoptUnverified (trx: Database, userId: string): Promise<Adoption | undefined> {
  const { email, passwordHash, emailVerified } = await trx.selectFrom('users')
    .select(['email', 'password_hash as passwordHash', 'email_verified as emailVerified'])
    .where('id', '=', userId).forNoKeyUpdate().executeTakeFirstOrThrow(() => new UserNotFound())
  if (emailVerified) return undefined
  const repaired = await repairAccount(trx, userId, 'first-proof', { actorId: userId })
  await trx.updateTable('users').set({ password_hash: null, email_verified: true, updated_at: sql`now()` })
    .where('id', '=', userId).execute()
  const hadPassword = passwordHash !== null
  if (hadPassword) await storeUserEvent(trx, 'password.changed', userId, userId)
  await storeUserEvent(trx, 'user.updated', userId, userId)
  return { email, hadPassword, repaired }
}
