import { sql } from 'kysely'
import { seconds, type UsedIdentity } from '../access/sessions.ts'
import type { Row } from '../tables/row.ts'
import type { Database } from '../tables/index.ts'
import type { LoginChallengesTable } from '../tables/sign-in.ts'

const MAX_CHALLENGES_PER_USER = 10
const MAX_ATTEMPTS_PER_CHALLENGE = 5

export interface NewLoginChallenge {
  hash: Uint8Array
  userId: string
  /** The hash against which the password was checked, if that was the first factor. */
  passwordHash: string | undefined
  /** The identity that was the first factor, if it was one. */
  identity?: UsedIdentity | undefined
  amr: readonly string[]
}

/** The login that waits for a second factor. */
export type LoginChallenge = Row<
  LoginChallengesTable, 'user_id' | 'password_hash' | 'identity_id' | 'provider_sid' | 'amr'
>

/** Stores a challenge that expires after `lifetime` seconds. The oldest ones of the user beyond ten are deleted. */
export async function insertLoginChallenge (
  db: Database, { hash, userId, passwordHash, identity, amr }: NewLoginChallenge, lifetime: number
): Promise<void> {
  await db
    .with('oldest', (cte) => cte.selectFrom('login_challenges').select('hash').where('user_id', '=', userId)
      .orderBy('created_at', 'desc').offset(MAX_CHALLENGES_PER_USER - 1))
    .with('evicted', (cte) => cte.deleteFrom('login_challenges')
      .where('hash', 'in', ({ selectFrom }) => selectFrom('oldest').select('hash')))
    .insertInto('login_challenges').columns(['hash', 'user_id', 'password_hash', 'identity_id', 'provider_sid', 'amr', 'expires_at'])
    .values({
      hash,
      user_id: userId,
      password_hash: passwordHash ?? null,
      identity_id: identity?.id ?? null,
      provider_sid: identity?.sid ?? null,
      amr: [...amr],
      expires_at: sql<Date>`now() + ${seconds(lifetime)}`,
    })
    .execute()
}

/**
 * Counts an attempt at a challenge, and returns the login that it belongs to. Returns undefined if there is no such
 * challenge, it has expired, or it had five attempts.
 */
export async function countLoginAttempt (db: Database, hash: Uint8Array): Promise<LoginChallenge | undefined> {
  return db.updateTable('login_challenges').set({ attempts: sql<number>`attempts + 1` })
    .where('hash', '=', hash).where('attempts', '<', MAX_ATTEMPTS_PER_CHALLENGE)
    .where('expires_at', '>', sql<Date>`now()`)
    .returning([
      'user_id as userId', 'password_hash as passwordHash', 'identity_id as identityId', 'provider_sid as providerSid',
      sql<string[]>`to_json(amr)`.as('amr'),
    ])
    .executeTakeFirst()
}

/** Deletes a challenge, because it was used. Returns whether it was there, which is the case once. */
export async function useLoginChallenge (db: Database, hash: Uint8Array): Promise<boolean> {
  const { numDeletedRows } = await db.deleteFrom('login_challenges')
    .where('hash', '=', hash).where('expires_at', '>', sql<Date>`now()`).executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}
