import { createTransport } from 'nodemailer'
import type { Mailer } from '../../schema/options/options.ts'
import { NODE_DEADLINES, type NodeDeadlines } from '../process/deadlines.ts'

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
    mailer: async ({ to, ...mail }) => { await transport.sendMail({ ...mail, to: { name: '', address: to } }) },
    close: () => transport.close(),
    verify: () => transport.verify(),
  }
}
