import { NIL } from 'uuid'
import type { NewAuditEntry } from '../../db/audit/audit.ts'
import { insertResult } from '../../db/idempotency/idempotency.ts'
import { linkKinds } from '../../db/mail-links/kinds.ts'
import { findAccount, insertPasswordToken, type NewToken } from '../../db/mail-links/password-links.ts'
import type { Database } from '../../db/tables/index.ts'
import { findCredentials } from '../../db/users/users.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { NoMailer, PasswordIsSet } from '../../schema/sign-in/passwords/passwords.ts'
import { ServiceUser, UserDisabled, UserNotFound } from '../../schema/users/users.ts'
import type { Audit } from '../audit/index.ts'
import { createAfterResponse } from '../support/after-response.ts'
import type { Caller } from '../access/caller.ts'
import type { Throttle } from '../throttle/throttle.ts'
import type { LinkDependencies } from './mail-link.ts'

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
   * Creates a link with which a user can set a password once, and stores it in a transaction, with an entry of the
   * account log and a mail. If there is no such user, the user is disabled, or the address may not get a link, the mail
   * is not sent.
   */
  async function storeLink (
    trx: Database, name: 'password-reset' | 'invitation', language: string | undefined, token: Omit<NewToken, 'hash'>,
    entry: NewAuditEntry
  ): Promise<void> {
    const { hash, link } = links.create('/set-password')
    const mail = mailer!.prepare(render(name, language, { link, duration: token.seconds }), token.seconds, {
      // Only admins invite, so nobody else keeps an invitation from being sent.
      budget: name === 'password-reset' ? 'reset' : 'invitation', hash,
    })
    await insertPasswordToken(trx, { hash, ...token }, entry, mail)
  }

  async function sendLink (email: string, caller: Caller): Promise<void> {
    const user = await findCredentials(db, email)
    // For an unknown address the same statements run. Otherwise the load would differ, and so would the time until the
    // next response, which would reveal which addresses have an account.
    const entry = audit.entry(caller, { action: 'password.reset-request', userId: user?.id })
    const token = { userId: user?.id ?? NIL, seconds: passwordTokenSeconds, onlyIfProven: true }
    await db.transaction().execute((trx) =>
      storeLink(trx, 'password-reset', caller.languageOf(user?.id), token, entry))
  }

  async function sendInvitation (caller: Caller, userId: string, once?: ResultKey): Promise<void> {
    if (!mailer) throw new NoMailer()
    const entry = audit.entry(caller, { action: 'user.invite', userId })
    const token = {
      userId, seconds: linkKinds.password.seconds, onlyIfProven: false, invitedBy: caller.actor?.id ?? null,
    }
    await db.transaction().execute(async (trx) => {
      await storeLink(trx, 'invitation', caller.languageOf(userId), token, entry)
      if (once) await insertResult(trx, 'invitation', userId, once)
      await caller.confirm()
    })
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
     * Sends a user a link to set a first password. Throws `Unauthenticated`, `Forbidden`, `UserNotFound`,
     * `ServiceUser`, `UserDisabled`, `PasswordIsSet`, `NoMailer`, `InvalidToken` if the caller may no longer act, and
     * `KeyTaken` if the key `once` is taken.
     */
    async invite (caller: Caller, id: string, once?: ResultKey): Promise<void> {
      caller.authorize('users:invite')
      const user = await findAccount(db, id)
      if (!user) throw new UserNotFound()
      if (user.kind === 'service') throw new ServiceUser()
      if (user.disabled) throw new UserDisabled()
      if (user.passwordHash !== null) throw new PasswordIsSet()
      await sendInvitation(caller, user.id, once)
    },

    /**
     * Sends the same link to a user who may have a password, as operators do. Throws `Unauthenticated`, `Forbidden`,
     * `NoMailer`, `InvalidToken`.
     */
    async inviteAgain (caller: Caller, userId: string): Promise<void> {
      caller.authorize('users:invite')
      await sendInvitation(caller, userId)
    },
  }
}
