import { sql } from 'kysely'
import type { CredentialKind } from '../../schema/outbox/events.ts'
import { UserNotFound } from '../../schema/users/user.ts'
import { storeCredentialEvent, storeUserEvent } from '../outbox/store.ts'
import { removeIdentities } from '../providers/identities.ts'
import type { Database } from '../tables/index.ts'
import { deleteTotp } from '../totp/totp.ts'
import { endedOf, voidIssued } from './void-issued.ts'

/** What was removed from an account that nobody had verified. */
export interface Adoption {
  email: string
  /** The ids of the sessions and API keys that have ended. */
  ended: string[]
  hadPassword: boolean
  /** Each passkey, authenticator app, API key and identity. */
  removed: CredentialKind[]
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
  const issued = await voidIssued(trx, userId, userId)
  const passkeys = await trx.deleteFrom('passkeys').where('user_id', '=', userId).returning('id').execute()
  const hadTotp = await deleteTotp(trx, userId)
  const identities = await removeIdentities(trx, userId, userId)
  await trx.updateTable('users').set({ password_hash: null, email_verified: true, updated_at: sql`now()` })
    .where('id', '=', userId).execute()
  const removed: CredentialKind[] = [...passkeys.map(() => 'passkey' as const), ...hadTotp ? ['totp' as const] : []]
  const hadPassword = passwordHash !== null
  if (hadPassword) await storeUserEvent(trx, 'password.changed', userId, userId)
  await storeUserEvent(trx, 'user.updated', userId, userId)
  for (const kind of removed) await storeCredentialEvent(trx, 'credential.removed', { userId, actorId: userId, kind })
  return {
    email,
    ended: endedOf(issued),
    hadPassword,
    // The events of the others are stored.
    removed: [
      ...removed, ...issued.keys.map(() => 'api-key' as const),
      ...Array.from({ length: identities }, () => 'identity' as const),
    ],
  }
}
