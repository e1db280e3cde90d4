import { restartLoginLimits } from '../../db/throttle/login-limits.ts'
import { replacePassword } from '../../db/mail-links/password-links.ts'
import { endedOf } from '../../db/sign-in/repairs.ts'
import { listWays, type StoredWay } from '../../db/sign-in/ways.ts'
import type { CredentialKind } from '../../schema/sign-in/ways.ts'
import type { Audit } from '../audit/index.ts'
import type { Caller } from '../access/caller.ts'
import type { Access } from '../access/index.ts'
import type { MailLinks } from '../mail-links/index.ts'
import type { SignIn } from '../sign-in/index.ts'
import type { Throttle } from '../throttle/throttle.ts'
import type { Core } from '../core.ts'

interface Dependencies extends
  Pick<Core, 'database'>, Pick<Access, 'sessions'>, Pick<MailLinks, 'undoLinks'>, Pick<SignIn, 'credentials'> {
  throttle: Throttle
  audit: Audit
}

/** What an operator decides about the ways to sign in. */
export interface SetPasswordOptions {
  /** Whether passkeys, identities and API keys stay. By default they are removed. */
  keepWays?: boolean
  /** Whether the authenticator app and the recovery codes are removed. By default they stay. */
  resetSecondFactor?: boolean
}

/** What a new password has ended, and which ways to sign in the user has after it. */
export interface SetPassword {
  endedSessions: number
  removed: CredentialKind[]
  remaining: StoredWay[]
}

/** Returns what a repair does instead of what its table says. */
export const decisionsOf = ({ keepWays = false, resetSecondFactor = false }: SetPasswordOptions) => ({
  ...keepWays && { passkey: 'keep', identity: 'keep', 'api-key': 'keep' } as const,
  ...resetSecondFactor && { totp: 'remove' } as const,
})

/**
 * Sets the password of a user for the operator, who needs neither the current one nor a link. Makes everything void
 * that was issued to the user, removes what can log in by itself, starts the limits of failed logins anew, and notifies
 * the user by mail. Throws `UserNotFound`, `ServiceUser`.
 */
export async function setPassword (
  dependencies: Dependencies, caller: Caller, userId: string, passwordHash: string, options: SetPasswordOptions = {}
): Promise<SetPassword> {
  const { database: { db }, audit, credentials, sessions, throttle, undoLinks } = dependencies
  const { repaired, remaining } = await db.transaction().execute(async (trx) => {
    const replaced = await replacePassword(
      trx, { userId, passwordHash, actorId: caller.actor?.id ?? null, decisions: decisionsOf(options) }
    )
    const { email, repaired } = replaced
    await audit.add(caller, { action: 'password.reset', userId }, trx)
    // There is no link that restores the former password, because whoever made the reset necessary may know it.
    await undoLinks.notifyPasswordChanged(trx, { email, userId, language: caller.languageOf(userId) })
    await credentials.recordRepaired(trx, caller, repaired, { userId, email })
    await caller.confirm()
    await restartLoginLimits(trx, { userId, email })
    return { repaired, remaining: await listWays(trx, userId) }
  })
  sessions.markEnded(endedOf(repaired))
  throttle.forgetRejections()
  return { endedSessions: repaired.sessions.length, removed: repaired.removed.map(({ kind }) => kind), remaining }
}
