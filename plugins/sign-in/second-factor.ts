import { randomBytes } from 'node:crypto'
import {
  countLoginAttempt, insertLoginChallenge, useLoginChallenge,
  type LoginChallenge, type NewLoginChallenge,
} from '../../db/sign-in/login-challenges.ts'
import { findSecondFactors } from '../../db/sign-in/second-factor.ts'
import type { Database } from '../../db/tables/index.ts'
import { InvalidChallenge, SecondFactorRequired, type SecondFactorMethod } from '../../schema/sign-in/second-factor.ts'
import type { Actor } from '../../schema/options/policy.ts'
import { createSecondFactorRule } from '../access/second-factor-rule.ts'
import { hashSecret } from '../access/secrets.ts'
import type { Core } from '../core.ts'

/** How long a challenge works. */
export const CHALLENGE_SECONDS = 300

export type SecondFactor = ReturnType<typeof createSecondFactor>

/** Asks for a second factor after the first one (contract 16.4). */
export function createSecondFactor ({ database: { db }, options }: Pick<Core, 'database' | 'options'>) {
  const { isRequired, isMissing } = createSecondFactorRule(options)

  return {
    isRequired,
    isMissing,

    /**
     * Returns whether a user has a second factor, which every step-up must use. A passkey makes nothing mandatory by
     * itself. Where a second factor is required, it is one: otherwise somebody who has only the first one could add
     * another.
     */
    isOwned: (
      { hasTotp, hasPasskey }: { hasTotp: boolean, hasPasskey: boolean }, user: Pick<Actor, 'role'>
    ): boolean => hasTotp || (hasPasskey && isRequired(user)),

    /**
     * Returns the error that asks for the second factor of a user whose first factor was right. It has a challenge that
     * can be used once within five minutes.
     * @param first how the user was authenticated so far: with the hash against which the password was checked, or the
     * identity at a provider, if that was the first factor
     * @param on the transaction that uses up the first factor, if that can be used once
     */
    async demand (
      userId: string,
      first: Pick<NewLoginChallenge, 'amr'> & Partial<Pick<NewLoginChallenge, 'passwordHash' | 'identity'>>,
      on: Database = db
    ): Promise<SecondFactorRequired> {
      const { passwordHash, identity, amr } = first
      const challenge = randomBytes(32).toString('base64url')
      const given = { hash: hashSecret(challenge), userId, passwordHash, identity, amr }
      await insertLoginChallenge(on, given, CHALLENGE_SECONDS)
      const { totp, recoveryCodes, passkeys } = await findSecondFactors(on, userId)
      const methods: SecondFactorMethod[] = [
        ...totp ? ['totp' as const] : [], ...recoveryCodes > 0 ? ['recovery-code' as const] : [],
        ...passkeys > 0 ? ['passkey' as const] : [],
      ]
      return new SecondFactorRequired(challenge, methods)
    },

    /** Counts an attempt at a challenge, and returns the login that waits for it. Throws `InvalidChallenge`. */
    async attempt (challenge: string): Promise<LoginChallenge> {
      const found = await countLoginAttempt(db, hashSecret(challenge))
      if (!found) throw new InvalidChallenge()
      return found
    },

    /**
     * Uses a challenge up, in the transaction that uses up the second factor. Throws `InvalidChallenge` the second
     * time.
     */
    async use (trx: Database, challenge: string): Promise<void> {
      if (!await useLoginChallenge(trx, hashSecret(challenge))) throw new InvalidChallenge()
    },
  }
}
