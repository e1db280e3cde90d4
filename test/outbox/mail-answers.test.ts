import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { createSmtpMailer } from '../../node/mail/smtp.ts'
import { isRefusedForGood } from '../../plugins/outbox/mails/smtp-reply.ts'
import { slowNode } from '../helpers/deadlines.ts'

// A mail counts as sent if the server has accepted its text in a complete reply. Whatever else a server says, at any
// step, is a failure, after which the mail is sent again.

const MIB = 1024 * 1024
const mail = { to: 'ada@example.com', subject: 'Hello', text: 'Hello\n' }
const STEPS = ['greeting', 'EHLO', 'MAIL', 'RCPT', 'DATA', 'message'] as const
type Step = typeof STEPS[number]

const usual: Readonly<Record<Step, string>> = {
  greeting: '220 here', EHLO: '250-here\r\n250 8BITMIME', MAIL: '250 fine', RCPT: '250 fine', DATA: '354 go on', message: '250 accepted',
}

/** Starts a mail server that does something else at one step, and counts the texts it has received. */
async function start (t: Test, at: Step, answer: (socket: Socket) => unknown) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    let isText = false
    const reply = (step: Step) => step === at ? answer(socket) : socket.write(`${usual[step]}\r\n`)
    createInterface(socket).on('line', (line) => {
      if (isText && line !== '.') return
      const step = isText ? 'message' : STEPS.find((step) => line.startsWith(step))
      isText = step === 'DATA' && (at !== 'DATA')
      // After `RSET` and `QUIT`, it has nothing more to say.
      if (step) reply(step)
      else socket.end()
    }).on('error', () => {})
    reply('greeting')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Sends the mail. Returns the error. */
async function send (t: Test, url: string, isSilent: boolean): Promise<unknown> {
  const deadlines = isSilent ? { ...slowNode, mailConnection: 300, mailSilence: 300 } : slowNode
  const { mailer, close } = createSmtpMailer(url, 'usher@example.com', deadlines)
  t.teardown(close)
  return Promise.resolve(mailer(mail)).then(() => undefined, (error: unknown) => error)
}

const line = (text: string) => (socket: Socket) => socket.write(`${text}\r\n`)
const end = (text: string) => (socket: Socket) => socket.end(text)

const wrong: Readonly<Record<string, { answer: (socket: Socket) => unknown, isSilent?: boolean }>> = {
  'an empty line, and nothing more': { answer: line(''), isSilent: true },
  'white space, and nothing more': { answer: line('  \t'), isSilent: true },
  'nothing at all': { answer: () => {}, isSilent: true },
  'the first line of several, and nothing more': { answer: line('250-one'), isSilent: true },
  'a code without an end of the line': { answer: (socket) => socket.write('250 ok'), isSilent: true },
  'the end of the connection': { answer: end('') },
  'an abrupt end of the connection': { answer: (socket) => socket.destroy() },
  'half a code': { answer: end('25') },
  'a reply without an end': { answer: end('250 ok') },
  'half of several lines': { answer: end('250-one\r\n250-tw') },
  HTTP: { answer: end('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html></html>\r\n') },
  'a page': { answer: end('<!DOCTYPE html>\r\n') },
  'no number': { answer: line('ok') },
  'the code 000': { answer: line('000 ok') },
  'the code 150': { answer: line('150 wait') },
  'the code 450': { answer: line('450 later') },
  'the code 421': { answer: line('421 closing') },
  'the code 999': { answer: line('999 ok') },
  'an endless line': { answer: (socket) => flood(socket, 'x'.repeat(64 * 1024)) },
  'endless lines': { answer: (socket) => flood(socket, '250-x\r\n'.repeat(10_000)) },
}

function flood (socket: Socket, text: string): void {
  let sent = 0
  const write = () => {
    while (!socket.destroyed && sent < 64 * MIB && socket.write(text)) sent += text.length
  }
  socket.on('drain', write)
  write()
}

t.test('4.7 what a mail server answers in place of a reply is no acceptance', async (t) => {
  t.jobs = 4
  for (const step of STEPS) {
    t.test(`4.7 in place of the reply to ${step}`, async (t) => {
      const before = process.memoryUsage().rss
      await Promise.all(Object.entries(wrong).map(async ([name, { answer, isSilent = false }]) => {
        const error = await send(t, await start(t, step, answer), isSilent)
        t.ok(error instanceof Error, name)
        t.notOk(isRefusedForGood(error), `${name}: the mail is sent again`)
      }))
      t.ok(process.memoryUsage().rss - before < 256 * MIB, 'and takes no memory')
    })
  }
})

t.test('4.7 a complete reply with 2 as its first digit is the acceptance of a mail', async (t) => {
  for (const reply of ['250 ok', '250', '250 2.0.0 Ok: queued as 7', '250-one\r\n250-two\r\n250 three', '251 will forward', '250 \u00fc']) {
    t.equal(await send(t, await start(t, 'message', line(reply)), false), undefined, reply)
  }
  const slowly = async (socket: Socket) => { for (const char of '250 ok\r\n') socket.write(char) }
  t.equal(await send(t, await start(t, 'message', slowly), false), undefined, 'in pieces')
})

t.test('4.7 a number that only begins like a code is no acceptance of a mail', async (t) => {
  for (const reply of ['2500000 ok', '2', '25', '25 ok', '2xx ok', '250ok', '250.2 ok', '200000', `2${'0'.repeat(10_000)}`]) {
    const error = await send(t, await start(t, 'message', line(reply)), false)
    t.match(error, { message: /not accepted the mail in a reply of SMTP/ }, reply.slice(0, 20))
    t.ok(`${error}`.length < 300, 'what it has said is cut')
    t.notOk(isRefusedForGood(error), 'the mail is sent again')
  }
})
