import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import type { Test } from 'tap'
import type { Mail, Mailer } from '../../schema/options/options.ts'
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

/** The mails of the apps that the tests of a process share. A test reads those to addresses of its own. */
export const sharedInbox = createMailer()

/**
 * Starts an SMTP server. It accepts every mail unless `answer` returns an SMTP status. It is stopped when the test
 * ends.
 */
export async function startMailServer (
  t: Test, answer: (to: string) => number | undefined = () => undefined
): Promise<Inbox & { url: string, raw: string[] }> {
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

/** Replies of a mail server by the command they refuse; `message` is the one to the text of a mail. */
export type Replies = Readonly<Partial<Record<'greeting' | 'AUTH PLAIN' | 'MAIL FROM' | 'RCPT TO' | 'message', string>>>

/** Starts an SMTP server that refuses what `replies` says until it is mended. It is stopped when the test ends. */
export async function startRefusingServer (
  t: Test, replies: Replies
): Promise<{ url: string, accepted: number, mend (): void }> {
  let isMended = false
  const result = { url: '', accepted: 0, mend: () => { isMended = true } }
  const refusal = (step: keyof Replies): string | undefined => isMended ? undefined : replies[step]
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    let isText = false
    const say = (text: string) => socket.write(`${text}\r\n`)
    function reply (line: string): string | undefined {
      if (isText) {
        if (line !== '.') return undefined
        isText = false
        const refused = refusal('message')
        if (refused === undefined) result.accepted++
        return refused ?? '250 accepted'
      }
      if (line.startsWith('EHLO ')) return '250-here\r\n250 AUTH PLAIN'
      if (line.startsWith('AUTH ')) return refusal('AUTH PLAIN') ?? '235 welcome'
      if (line === 'DATA') {
        isText = true
        return '354 go on'
      }
      return refusal(line.split(':', 1)[0] as keyof Replies) ?? '250 fine'
    }
    socket.on('error', () => {})
    createInterface(socket).on('line', (line) => {
      const answer = reply(line)
      if (answer !== undefined) say(answer)
    })
    say(refusal('greeting') ?? '220 here')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  result.url = `smtp://user:password@127.0.0.1:${(server.address() as AddressInfo).port}`
  return result
}

// Parses RFC 5322, RFC 2045 and RFC 2046 as far as ASCII texts with an HTML alternative need.
function parse (message: string): Omit<Mail, 'to'> {
  const { head, body } = split(message)
  const subject = /^subject: (.*)$/mi.exec(head)![1]!.trim()
  const [, boundary] = /^content-type: multipart\/alternative;\s*boundary="([^"]+)"$/mi.exec(head) ?? []
  if (boundary === undefined) return { subject, text: decode(head, body) }
  const [text, html] = body.split(`--${boundary}`).slice(1, 3).map((part) => {
    const { head, body } = split(part.replace(/^\r\n/, '').replace(/\r\n$/, ''))
    return decode(head, body)
  })
  return { subject, text: text!, html }
}

function split (message: string): { head: string, body: string } {
  const [head = '', ...rest] = message.split('\r\n\r\n')
  return { head, body: rest.join('\r\n\r\n') }
}

function decode (head: string, body: string): string {
  const quoted = /^content-transfer-encoding: quoted-printable$/mi.test(head)
  const text = quoted
    ? body.replaceAll('=\r\n', '')
      .replaceAll(/=([0-9A-F]{2})/g, (_, octet: string) => String.fromCharCode(parseInt(octet, 16)))
    : body
  return text.replaceAll('\r\n', '\n')
}
