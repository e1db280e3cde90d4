import { createTransport } from 'nodemailer'
import type { Mailer } from '../../schema/options/options.ts'
import { NODE_DEADLINES, type NodeDeadlines } from '../process/deadlines.ts'

// RFC 5321 4.2: three digits, and then a space, a hyphen or the end. nodemailer looks at the first digit only.
const ACCEPTANCE = /^2\d\d(?:[ -]|$)/
const REPLY_CHARACTERS = 200

export interface SmtpMailer {
  mailer: Mailer
  close: () => void
  /** Connects and logs in, without sending a mail. Rejects if the mail server cannot be used. */
  verify: () => Promise<unknown>
}

/**
 * Returns a mailer for a server such as `smtps://user:password@mail.example.com`, and a function that closes its
 * connections. The scheme decides about TLS. The query string may have options of nodemailer. If a mail server takes
 * longer than the deadlines, `plugins/outbox/mails/mailer.ts` tries again.
 */
export function createSmtpMailer (
  url: string, from: string, { mailConnection, mailSilence }: NodeDeadlines = NODE_DEADLINES
): SmtpMailer {
  const transport = createTransport({
    pool: true,
    url,
    connectionTimeout: mailConnection,
    greetingTimeout: mailConnection,
    dnsTimeout: mailConnection,
    socketTimeout: mailSilence,
    disableFileAccess: true,
    disableUrlAccess: true,
  }, {
    from,
    // RFC 3834: this header keeps absence notices and other automatic responders from replying.
    headers: { 'Auto-Submitted': 'auto-generated' },
  })
  return {
    // As an object, the address is not parsed. A string could be parsed as a list of addresses.
    mailer: async ({ to, ...mail }) => {
      const { response } = await transport.sendMail({ ...mail, to: { name: '', address: to } })
      if (ACCEPTANCE.test(response)) return
      const said = response.slice(0, REPLY_CHARACTERS)
      throw new Error(`the mail server has not accepted the mail in a reply of SMTP: ${JSON.stringify(said)}`)
    },
    close: () => transport.close(),
    verify: () => transport.verify(),
  }
}
