import { restartLoginLimits } from '../../db/throttle/login-limits.ts'
import { replacePassword } from '../../db/auth/password-tokens.ts'
import { endedOf } from '../../db/auth/void-issued.ts'
import type { Audit } from '../audit/index.ts'
import type { Caller } from '../auth/caller.ts'
import type { Auth } from '../auth/index.ts'
import type { Core } from '../core.ts'

interface Dependencies extends Pick<Core, 'database'>, Pick<Auth, 'sessions' | 'throttle' | 'undoLinks'> {
  audit: Audit
}

/**
 * Sets the password of a user for the operator, who needs neither the current one nor a link. Makes everything void
 * that was issued to the user, starts the limits of failed logins anew, and notifies the user by mail. Returns the
 * number of ended sessions. Throws `UserNotFound`, `ServiceUser`.
 */
export async function setPassword (
  dependencies: Dependencies, caller: Caller, userId: string, passwordHash: string
): Promise<number> {
  const { database: { db }, audit, sessions, throttle, undoLinks } = dependencies
  const { ended } = await db.transaction().execute(async (trx) => {
    const replaced = await replacePassword(trx, { userId, passwordHash, actorId: caller.actor?.id ?? null })
    await audit.add(caller, { action: 'password.reset', userId }, trx)
    for (let count = replaced.identities; count > 0; count--) {
      await audit.add(caller, { action: 'identity.remove', userId }, trx)
    }
    // There is no link that restores the former password, because whoever made the reset necessary may know it.
    const language = caller.languageOf(userId)
    await undoLinks.notifyPasswordChanged(trx, { email: replaced.email, userId, language })
    await caller.confirm()
    await restartLoginLimits(trx, { userId, email: replaced.email })
    return replaced
  })
  sessions.markEnded(endedOf(ended))
  throttle.forgetRejections()
  return ended.sessions.length
}
