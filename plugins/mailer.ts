import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { decrypt, encrypt, isEncrypted } from '../db/encryption.ts'
import { MAIL, type NewMail, type StoredMail } from '../db/outbox/mails.ts'
import type { MailContent } from '../schema/mail.ts'
import type { Mailer } from '../schema/options.ts'
import { describeError } from './outbox/describe-error.ts'

const AT_ONCE = 4

declare module 'fastify' {
  interface FastifyInstance {
    usherMailer: ReturnType<typeof createMails> | undefined
  }
}

// A mail is authenticated with its id, so that its content cannot be moved to a row with another recipient unnoticed.
const nameOf = (id: string) => `mail ${id}`

class Expired extends Error {}

function createMails (app: FastifyInstance, mailer: Mailer) {
  const { log, usherDatabase: { newId }, usherOutbox: outbox, usherOptions: { secret, deadlines } } = app

  function open (id: string, content: string): MailContent {
    if (!isEncrypted(content)) return JSON.parse(content)
    if (secret === undefined) throw new Error('the mail is encrypted, and this node has no secret')
    return JSON.parse(decrypt(secret, nameOf(id), content))
  }

  outbox.add({
    name: MAIL,
    types: [MAIL],
    slots: AT_ONCE,
    atClose: true,
    attemptMs: deadlines.mail,
    async deliver ({ id, data, expired }) {
      const { to, content } = data as StoredMail
      const mail = open(id, content)
      if (to === null) return
      if (expired) throw new Expired('the mail has expired')
      await mailer({ to, ...mail })
    },
    // An SMTP reply of 500 or above is a permanent failure, such as an unknown mailbox.
    isFinal: (error) => error instanceof Expired || Number((error as { responseCode?: unknown } | null)?.responseCode) >= 500,
    // The mail is not listed as failed, because it contains a link that may still work.
    report ({ data }, error, final) {
      const fields = { err: describeError(error), userId: (data as StoredMail).userId }
      if (final) log.error(fields, 'A mail could not be sent')
      else log.warn(fields, 'A mail could not be sent: another attempt follows')
      return undefined
    },
  })

  return {
    /**
     * Returns a mail to be stored in the transaction of the change that causes it. It is sent after the commit, in several attempts if
     * necessary, as long as its links work.
     * @param seconds how long its links work
     */
    prepare (content: MailContent, seconds: number): NewMail {
      const id = newId()
      const text = JSON.stringify(content)
      return { id, content: secret === undefined ? text : encrypt(secret, nameOf(id), text), seconds }
    },
  }
}

/**
 * Sends mails with the option `mailer`. They are stored in the outbox along with the change that causes them, so none is lost with a
 * process. Without the option, `usherMailer` is undefined, and no mail is stored.
 */
export default fp(async function mailer (app) {
  const { mailer } = app.usherOptions
  app.decorate('usherMailer', mailer && createMails(app, mailer))
}, { name: 'usher-mailer', dependencies: ['usher-options', 'usher-database', 'usher-outbox'] })
