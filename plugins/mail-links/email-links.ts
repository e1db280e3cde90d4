import { insertEmailToken, type EmailChange } from '../../db/mail-links/email-links.ts'
import { linkKinds } from '../../db/mail-links/kinds.ts'
import { NoMailer } from '../../schema/sign-in/passwords/passwords.ts'
import { UserNotFound } from '../../schema/users/users.ts'
import type { Database } from '../../db/tables/index.ts'
import type { Caller } from '../access/caller.ts'
import type { LinkDependencies } from './mail-link.ts'

export type EmailLinks = ReturnType<typeof createEmailLinks>

/** Sends links by mail with which users verify their addresses (contract 11.3). */
export function createEmailLinks ({ database: { db }, links, mails: { mailer, render } }: LinkDependencies) {
  /**
   * Returns a function that sends, with the transaction that it gets, a link to verify the current address of a user,
   * or one to the address that the user gets with it. It throws `UserNotFound` and `EmailVerified`. Throws `NoMailer`.
   */
  function prepare (caller: Caller, userId: string, change?: EmailChange): (trx: Database) => Promise<void> {
    if (!mailer) throw new NoMailer()
    const { hash, link } = links.create('/verify-email')
    const { seconds } = linkKinds.email
    const token = { hash, userId, lifetime: seconds, change }
    const content = render('verify-email', caller.languageOf(userId), { link, duration: seconds })
    const mail = mailer.prepare(content, seconds, { budget: 'request', hash })
    return async (trx) => { if (!await insertEmailToken(trx, token, mail)) throw new UserNotFound() }
  }

  return {
    /** Throws `NoMailer` if no link can be sent. */
    requireMailer (): void {
      if (!mailer) throw new NoMailer()
    },

    prepare,

    /**
     * Sends a user a link to verify the current address. Throws `NoMailer`, `UserNotFound`, `EmailVerified`, and
     * `InvalidToken` if the caller may no longer act.
     */
    async send (userId: string, caller: Caller): Promise<void> {
      const store = prepare(caller, userId)
      await db.transaction().execute(async (trx) => {
        await store(trx)
        await caller.confirm()
      })
    },
  }
}
