import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { deleteExpiredUndoTokens } from '../../db/undo-tokens.ts'
import { purgeRegularly, ROWS_A_PURGE } from '../purge.ts'
import { emailChangedMail, passwordChangedMail } from './account-mails.ts'
import { createLink, pageOf } from './mail-links.ts'
import { changedMail } from './password-mails.ts'

const PURGE_SECONDS = 3600

declare module 'fastify' {
  interface FastifyInstance {
    usherUndoLinks: ReturnType<typeof createUndoLinks>
  }
}

/** A link that undoes a change. Its hash is stored in the transaction of the change. */
export type UndoLink = ReturnType<typeof createLink>

function createUndoLinks (app: FastifyInstance) {
  const { usherMailer: mailer } = app

  return {
    /** Returns a link for a change that follows, or undefined if no mail can be sent. */
    create: (): UndoLink | undefined => mailer && createLink(app, '/undo'),

    /** Sends the owner of a former address the link that restores it. */
    notifyEmailChanged (formerEmail: string, { link }: UndoLink, userId: string): void {
      mailer?.send({ to: formerEmail, ...emailChangedMail(link) }, userId)
    },

    /**
     * Sends a user a mail that says that the password was set.
     * @param undo the link that restores the former one, if there is one
     */
    notifyPasswordChanged (email: string, undo: UndoLink | undefined, userId: string): void {
      mailer?.send({ to: email, ...undo ? passwordChangedMail(undo.link) : changedMail(pageOf(app, '/set-password')) }, userId)
    },
  }
}

/** Sends links by mail that undo a change of the address or the password (contract 11.3). */
export default fp(async function undoLinks (app) {
  app.decorate('usherUndoLinks', createUndoLinks(app))
  purgeRegularly(app, 'undo links', PURGE_SECONDS, () => deleteExpiredUndoTokens(app.usherDatabase.db, ROWS_A_PURGE))
}, { name: 'usher-undo-links', dependencies: ['usher-database', 'usher-mailer'] })
