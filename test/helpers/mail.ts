import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import type { Test } from 'tap'
import type { Mail, Mailer } from '../../schema/options.ts'
import { until } from './until.ts'

/** The received mails, oldest first. */
export interface Inbox {
  readonly mails: Mail[]
  /** Resolves with the mails to an address when there are at least `count`. */
  of (to: string, count: number): Promise<Mail[]>
  /** Resolves with the token in the latest mail to an address when there are at least `count` mails. */
  token (to: string, count?: number): Promise<string>
}

function createInbox (mails: Mail[]): Inbox {
  async function of (to: string, count: number): Promise<Mail[]> {
    const found = () => mails.filter((mail) => mail.to === to)
    await until(`${count} mails to ${to}`, () => found().length >= count)
    return found()
  }
  return { mails, of, token: async (to, count = 1) => tokenIn((await of(to, count)).at(-1)!) }
}

/** Returns the token in the link of a mail. */
export const tokenIn = ({ text }: Mail): string => /#token=([\w-]{43})$/m.exec(text)![1]!

/** Creates a mailer that keeps the mails it is called with. */
export function createMailer (): Inbox & { mailer: Mailer } {
  const mails: Mail[] = []
  return { ...createInbox(mails), mailer: (mail) => { mails.push(mail) } }
}

/**
 * Starts an SMTP server. It accepts every mail unless `answer` returns an SMTP status. It is stopped when the test
 * ends.
 */
export async function startMailServer (t: Test, answer: (to: string) => number | undefined = () => undefined): Promise<Inbox & { url: string, raw: string[] }> {
  const raw: string[] = []
  const mails: Mail[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onRcptTo ({ address }, _, done) {
      const responseCode = answer(address)
      done(responseCode ? Object.assign(new Error(`no mail for <${address}>`), { responseCode }) : null)
    },
    onData (stream, { envelope: { rcptTo } }, done) {
      text(stream).then((message) => {
        raw.push(message)
        mails.push(...rcptTo.map(({ address }) => ({ to: address, ...parse(message) })))
        done()
      }, done)
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const { port } = server.server.address() as AddressInfo
  return { ...createInbox(mails), raw, url: `smtp://127.0.0.1:${port}` }
}

// Parses RFC 5322 and RFC 2045 as far as plain ASCII text needs.
function parse (message: string): { subject: string, text: string } {
  const [head = '', ...rest] = message.split('\r\n\r\n')
  const body = rest.join('\r\n\r\n')
  const quoted = /^content-transfer-encoding: quoted-printable$/mi.test(head)
  const text = quoted ? body.replaceAll('=\r\n', '').replaceAll(/=([0-9A-F]{2})/g, (_, octet: string) => String.fromCharCode(parseInt(octet, 16))) : body
  return { subject: /^subject: (.*)$/mi.exec(head)![1]!.trim(), text: text.replaceAll('\r\n', '\n') }
}
