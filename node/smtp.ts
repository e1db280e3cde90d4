import { createTransport } from 'nodemailer'
import type { Mailer } from '../schema/options.ts'

// A mail server that is silent for longer is tried again by `mailer.ts`, whose own bound is above all of these.
const CONNECT_MS = 10_000
const SILENT_MS = 15_000

/** A mailer for a server such as `smtps://user:password@mail.example.com`; the URL says whether by TLS, and may carry options of nodemailer's. */
export function createSmtpMailer (url: string, from: string): { mailer: Mailer, close: () => void } {
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
    // RFC 3834: nobody's absence is to be answered to this.
    headers: { 'Auto-Submitted': 'auto-generated' },
  })
  return {
    // As an address, and not as a list of such to be parsed.
    mailer: async ({ to, ...mail }) => { await transport.sendMail({ ...mail, to: { name: '', address: to } }) },
    close: () => transport.close(),
  }
}
