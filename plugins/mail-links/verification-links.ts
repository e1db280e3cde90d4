import { linkKinds } from '../../db/mail-links/kinds.ts'
import { insertEmailToken, type EmailChange } from '../../db/mail-links/verification-links.ts'
import { findAccount } from '../../db/mail-links/password-links.ts'
import { NoMailer } from '../../schema/sign-in/passwords/passwords.ts'
import { UserNotFound } from '../../schema/users/users.ts'
import type { Database } from '../../db/tables/index.ts'
import type { Caller } from '../access/caller.ts'
import type { Throttle } from '../throttle/throttle.ts'
import type { LinkDependencies } from './mail-link.ts'

interface Dependencies extends LinkDependencies {
  throttle: Throttle
}

export type VerificationLinks = ReturnType<typeof createVerificationLinks>

/** Sends links by mail with which users verify their addresses (contract 11.3). */
export function createVerificationLinks (
  { database: { db }, links, mails: { mailer, render }, throttle }: Dependencies
) {
  /**
   * Returns a function that sends, with the transaction that it gets, a link to verify the current address of a user,
   * or one to the address that the user gets with it. It throws `UserNotFound` and `EmailVerified`. Throws `NoMailer`.
   */
  function prepare (caller: Caller, userId: string, change?: EmailChange): (trx: Database) => Promise<void> {
    if (!mailer) throw new NoMailer()
    const { hash, link } = links.create('/verify-email')
    const { seconds } = linkKinds.verification
    const token = { hash, userId, lifetime: seconds, change }
    const content = render('verify-email', caller.languageOf(userId), { link, duration: seconds })
    const mail = mailer.prepare(content, seconds, { budget: 'request', hash })
    return async (trx) => { if (!await insertEmailToken(trx, token, mail)) throw new UserNotFound() }
  }

  return {
    prepare,

    /**
     * Sends a user a link to verify the current address. Throws `Unauthenticated`, `Forbidden`, `UserNotFound`,
     * `NoMailer`, `TooManyRequests`, `EmailVerified`, and `InvalidToken` if the caller may no longer act.
     */
    async send (caller: Caller, id: string): Promise<void> {
      caller.authorize('users:verify-email', { ownerId: id.toLowerCase() })
      const user = await findAccount(db, id)
      if (!user) throw new UserNotFound()
      const store = prepare(caller, user.id)
      await throttle.verification({ userId: user.id, client: caller.client })
      await db.transaction().execute(async (trx) => {
        await store(trx)
        await caller.confirm()
      })
    },
  }
}
