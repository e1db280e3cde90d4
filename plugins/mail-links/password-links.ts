import { NIL } from 'uuid'
import type { NewAuditEntry } from '../../db/audit/audit.ts'
import { insertResult } from '../../db/idempotency/idempotency.ts'
import { insertPasswordToken, type NewToken } from '../../db/mail-links/password-links.ts'
import type { Database } from '../../db/tables/index.ts'
import { findCredentials } from '../../db/users/users.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { NoMailer } from '../../schema/sign-in/passwords/passwords.ts'
import type { Audit } from '../audit/index.ts'
import { createAfterResponse } from '../support/after-response.ts'
import type { Caller } from '../access/caller.ts'
import type { Throttle } from '../throttle/throttle.ts'
import type { LinkDependencies } from './mail-link.ts'

// An invitation comes unexpectedly, so its recipient may not read it for days.
const INVITATION_SECONDS = 7 * 86400

export type PasswordLinks = ReturnType<typeof createPasswordLinks>

interface Dependencies extends LinkDependencies {
  audit: Audit
  throttle: Throttle
}

/** Sends links by mail with which users set a password (contract 4.7). */
export function createPasswordLinks (
  {
    lifecycle, database: { db }, links, mails: { mailer, render }, audit, throttle, options: { passwordTokenSeconds },
  }: Dependencies
) {
  const later = createAfterResponse(lifecycle, {
    full: 'A link to set a password is not sent because too many requests are waiting',
    failed: 'A link to set a password could not be created',
  })
  let hasWarned = false

  /**
   * Creates a link with which a user can set a password once, and stores it with an entry of the account log and a
   * mail. If there is no such user, the user is disabled, or the address may not get a link, the mail is not sent.
   */
  async function storeLink (
    name: 'password-reset' | 'invitation', language: string | undefined, token: Omit<NewToken, 'hash'>,
    entry: NewAuditEntry,
    confirm?: (trx: Database) => Promise<void>
  ) {
    const { hash, link } = links.create('/set-password')
    const mail = mailer!.prepare(render(name, language, { link, duration: token.seconds }), token.seconds, {
      // Only admins invite, so nobody else keeps an invitation from being sent.
      budget: name === 'password-reset' ? 'reset' : 'invitation', hash,
    })
    await insertPasswordToken(db, { hash, ...token }, entry, mail, confirm)
  }

  async function sendLink (email: string, caller: Caller): Promise<void> {
    const user = await findCredentials(db, email)
    // For an unknown address the same statements run. Otherwise the load would differ, and so would the time until the
    // next response, which would reveal which addresses have an account.
    const entry = audit.entry(caller, { action: 'password.reset-request', userId: user?.id })
    await storeLink('password-reset', caller.languageOf(user?.id), {
      userId: user?.id ?? NIL, seconds: passwordTokenSeconds, onlyIfProven: true,
    }, entry)
  }

  return {
    /**
     * Sends a link to the user of an address, if there is one. This happens after the response, which therefore takes
     * the same time whether or not there is such a user. Failures are logged. Throws `TooManyRequests`.
     */
    async request (caller: Caller, email: string): Promise<void> {
      const { address, client } = caller
      await throttle.reset({ email, address, ...client && { client } })
      if (mailer) return later(caller, () => sendLink(email, caller))
      if (!hasWarned) lifecycle.log.warn('Links to set a password are not sent: there is no mailer')
      hasWarned = true
    },

    /**
     * Sends a user a link to set a first password. Throws `NoMailer`, `InvalidToken` if the caller may no longer act,
     * and `KeyTaken` if the key `once` is taken.
     */
    async invite (userId: string, caller: Caller, once?: ResultKey): Promise<void> {
      if (!mailer) throw new NoMailer()
      const entry = audit.entry(caller, { action: 'user.invite', userId })
      await storeLink('invitation', caller.languageOf(userId), {
        userId, seconds: INVITATION_SECONDS, onlyIfProven: false, invitedBy: caller.actor?.id ?? null,
      }, entry, async (trx) => {
        if (once) await insertResult(trx, 'invitation', userId, once)
        await caller.confirm()
      })
    },
  }
}
