import { linkKinds } from '../../db/mail-links/kinds.ts'
import { insertMail, type NewMail } from '../../db/outbox/mails.ts'
import type { Database, UserRow } from '../../db/tables/index.ts'
import type { StoredWay } from '../../db/sign-in/ways.ts'
import type { ChangeContext } from '../../db/users/update-user.ts'
import { admittedWays, type AdmittedWays } from '../../schema/options/mail.ts'
import { credentialKinds, type CredentialKind } from '../../schema/sign-in/ways.ts'
import type { RenderedMail } from '../outbox/mails/render.ts'
import type { LinkDependencies, MailLink } from './mail-link.ts'

/** A link that undoes a change. Its hash is stored in the transaction of the change. */
export type UndoLink = MailLink

/** The recipient of a notice, and the `Accept-Language` of its user, if that is known (`Caller.languageOf`). */
export interface Recipient { email: string, userId: string, language: string | undefined }

export type UndoLinks = ReturnType<typeof createUndoLinks>

/** Sends links by mail that undo a change of the address, the password or the ways to sign in (contract 11.3). */
export function createUndoLinks (
  { links, mails: { mailer, render: renderMail } }: Pick<LinkDependencies, 'links' | 'mails'>
) {
  const duration = linkKinds.undo.seconds

  // The notice is sent even if its link is void by then (contract 11.3).
  const prepare = (render: (undoLink: string) => RenderedMail, undo: UndoLink | undefined): NewMail | null => mailer
    ? mailer.prepare(render(undo?.link ?? ''), duration, { hash: undo?.hash, withoutLink: undo && render('') })
    : null

  function renderAdded (
    kind: CredentialKind, language: string | undefined, undoLink: string, provider: string
  ): RenderedMail {
    switch (kind) {
      case 'totp': return renderMail('totp-added', language, { page: links.pageOf('/set-password'), undoLink, duration })
      case 'identity': return renderMail('identity-added', language, { provider, undoLink, duration })
      default: return renderMail(`${kind}-added`, language, { undoLink, duration })
    }
  }

  // Stores a notice without a link.
  async function notify (
    trx: Database, name: PlainNotice, page: '/set-password' | '/forgot-password', { email, userId, language }: Recipient
  ): Promise<void> {
    const mail = prepare(() => renderMail(name, language, { page: links.pageOf(page) }), undefined)
    if (mail) await insertMail(trx, mail, email, userId)
  }

  const create = (): UndoLink | undefined => mailer && links.create('/undo')

  const emailChanged = (language: string | undefined, undo?: UndoLink): NewMail | null =>
    prepare((undoLink) => renderMail('email-changed', language, { undoLink, duration }), undo)

  return {
    /** Returns a link for a change that follows, or undefined if no mail can be sent. */
    create,

    /**
     * Returns the mail to a former address: with the link that restores it, or without one, as it is sent if the
     * change has no link. Null if no mail can be sent.
     */
    emailChanged,

    /**
     * Returns what may undo a change of the address, and the mails about it. Only the user's own change has a link
     * (contract 11.3).
     */
    forEmailChange (isOwn: boolean, language: string | undefined): Pick<ChangeContext, 'undo' | 'mails'> {
      const undo = isOwn ? create() : undefined
      const plain = emailChanged(language)
      const linked = undo ? emailChanged(language, undo) : null
      return { undo: undo?.hash ?? null, mails: plain && { linked, plain } }
    },

    /**
     * Stores a mail that says that the password was set, maybe by somebody else (NIST 800-63B 4.6, OWASP ASVS 6.3.7),
     * in the transaction that sets it.
     * @param undo the link that restores the former one, if there is one
     */
    async notifyPasswordChanged (
      trx: Database, { email, userId, language }: Recipient, undo?: UndoLink
    ): Promise<void> {
      const page = links.pageOf('/set-password')
      const mail = prepare((undoLink) => renderMail('password-changed', language, { page, undoLink, duration }), undo)
      if (mail) await insertMail(trx, mail, email, userId)
    },

    /**
     * Stores a mail that says that a passkey, an authenticator app, an API key or an identity was added, in the
     * transaction that adds it.
     * @param undo the link that removes it, if there is one
     * @param provider the name of the provider of an identity
     */
    async notifyAdded (
      trx: Database, kind: CredentialKind, { email, userId, language }: Recipient, undo: UndoLink | undefined,
      provider = ''
    ): Promise<void> {
      const mail = prepare((undoLink) => renderAdded(kind, language, undoLink, provider), undo)
      if (mail) await insertMail(trx, mail, email, userId)
    },

    /** Stores a mail that says that it was removed, in the transaction that removes it. */
    notifyRemoved: (trx: Database, kind: CredentialKind, recipient: Recipient): Promise<void> =>
      notify(trx, `${kind}-removed`, '/set-password', recipient),

    /**
     * Stores a mail that says that the account was deleted, in the transaction that deletes it. It is sent although
     * nobody has the account any more.
     */
    async notifyDeleted (trx: Database, { email, language }: Omit<Recipient, 'userId'>): Promise<void> {
      const mail = prepare(() => renderMail('account-deleted', language, {}), undefined)
      if (mail) await insertMail(trx, mail, email, null)
    },

    /**
     * Stores a mail that says that recovery codes were created, in the transaction that replaces the former ones.
     * @param undo the link that restores these, if there is one
     */
    async notifyRecoveryCodesCreated (
      trx: Database, { email, userId, language }: Recipient, undo: UndoLink | undefined
    ): Promise<void> {
      const mail = prepare((undoLink) => renderMail('recovery-codes-created', language, { undoLink, duration }), undo)
      if (mail) await insertMail(trx, mail, email, userId)
    },

    /** Stores a mail that says that a recovery code was used, in the transaction that uses it up. */
    notifyRecoveryCodeUsed: (trx: Database, recipient: Recipient): Promise<void> =>
      notify(trx, 'recovery-code-used', '/set-password', recipient),

    /**
     * Stores a mail that says that the user has another role or is enabled again, and what can log in to the account,
     * in the transaction of the change. It has no names that somebody else may have chosen.
     */
    async notifyAdmitted (
      trx: Database, mail: 'account-promoted' | 'role-granted' | 'account-enabled',
      { email, userId, language, role }: Recipient & Pick<UserRow, 'role'>,
      ways: readonly StoredWay[], providerNameOf: (id: string) => string
    ): Promise<void> {
      const list = (kind: CredentialKind) => ways.filter((way) => way.kind === kind)
        .map(({ name, addedAt }) => {
          const day = addedAt.toISOString().slice(0, 10)
          return kind === 'identity' ? `${providerNameOf(name!)} (${day})` : day
        }).join(', ')
      const values = {
        page: links.pageOf('/set-password'),
        ways: ways.length > 0 ? 'yes' : '',
        ...Object.fromEntries(credentialKinds.map((kind) => [admittedWays[kind], list(kind)])) as AdmittedWays,
      }
      const prepared = prepare(() => mail === 'role-granted'
        ? renderMail(mail, language, { ...values, role })
        : renderMail(mail, language, values), undefined)
      if (prepared) await insertMail(trx, prepared, email, userId)
    },

    /**
     * Stores a mail that says that what was set up before the address was confirmed is removed, in the transaction that
     * removes it.
     */
    notifyAdopted: (trx: Database, recipient: Recipient): Promise<void> =>
      notify(trx, 'ways-removed', '/forgot-password', recipient),
  }
}

type PlainNotice = `${CredentialKind}-removed` | 'recovery-code-used' | 'ways-removed'
