import { createTransport } from 'nodemailer'
import type { Mailer } from '../../schema/options/options.ts'

// If a mail server takes longer, `plugins/outbox/mails/mailer.ts` tries again. Its limit for an attempt is longer than each of these.
const CONNECT_MS = 10_000
const SILENT_MS = 15_000

/**
 * Returns a mailer for a server such as `smtps://user:password@mail.example.com`, and a function that closes its connections.
 * The scheme decides about TLS. The query string may have options of nodemailer.
 */
export function createSmtpMailer (url: string, from: string): { mailer: Mailer, close: () => void, verify: () => Promise<unknown> } {
  const transport = createTransport({
    pool: true,
    url,
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    dnsTimeout: CONNECT_MS,
    socketTimeout: SILENT_MS,
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
    /** Connects and logs in, without sending a mail. Rejects if the mail server cannot be used. */
    verify: () => transport.verify(),
  }
}
