import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import Fastify from 'fastify'
import fp from 'fastify-plugin'
import t, { type Test } from 'tap'
import mailerPlugin, { type MailerOptions } from '../../plugins/mailer.ts'
import { createSmtpMailer } from '../../node/smtp.ts'
import type { Mail, Mailer } from '../../schema/options.ts'
import { createDatabase } from '../helpers/database.ts'
import { createMailer, startMailServer, tokenIn } from '../helpers/mail.ts'
import { startNode, stopNode, type ServingNode } from '../helpers/node.ts'
import { until } from '../helpers/until.ts'

const FROM = 'Usher <usher@example.com>'
const mail: Mail = { to: 'ada@example.com', subject: 'Hello', text: `A link:\n\nhttps://example.com/#token=${'t'.repeat(43)}\n` }

/** Registers the plugin on a bare Fastify and collects the level, message and error of each log entry. */
async function start (t: Test, mailer: Mailer | undefined, options: MailerOptions = {}) {
  const lines: string[] = []
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  await app.register(fp(async (app) => { app.decorate('usherOptions', { mailer } as never) }, { name: 'usher-options' }))
  await app.register(mailerPlugin, { pauses: [1, 1], ...options })
  await app.ready()
  return { app, lines, logged: () => lines.map((line) => JSON.parse(line)) }
}

t.test('4.7 a mail server gets a plain-text mail from the node\'s sender address', async (t) => {
  const server = await startMailServer(t)
  const { mailer, close } = createSmtpMailer(server.url, FROM)
  t.teardown(close)
  const { app } = await start(t, mailer)
  app.usherMailer!.send(mail, 'id')
  t.same(await server.of(mail.to, 1), [mail])
  t.match(server.raw[0], /^From: Usher <usher@example\.com>\r$/m)
  t.match(server.raw[0], /^Auto-Submitted: auto-generated\r$/m)
  t.match(server.raw[0], /^Content-Type: text\/plain; charset=utf-8\r$/m)

  await t.test('4.7 an address cannot add headers or recipients', async (t) => {
    const evil = ['eve@example.com\r\nBcc: all@example.com', 'eve@example.com, all@example.com', 'Eve <all@example.com>']
    for (const to of evil) app.usherMailer!.send({ ...mail, to, subject: 'Hello\r\nBcc: all@example.com' }, 'id')
    await app.close()
    t.notOk(server.mails.some(({ to }) => to === 'all@example.com'))
    t.notOk(server.raw.some((message) => /^bcc:/mi.test(message)))
  })
})

t.test('4.7 a failed mail is sent again, and logged without the address and the link', async (t) => {
  const failures = [Object.assign(new Error(`cannot deliver to <ada@example.com>: ${mail.text}`), { code: 'EENVELOPE', responseCode: 451 }), 'busy']
  const inbox = createMailer()
  const { app, lines, logged } = await start(t, async (mail) => {
    if (failures.length > 0) throw failures.shift()
    await inbox.mailer(mail)
  })
  app.usherMailer!.send(mail, 'id of ada')
  t.same(await inbox.of(mail.to, 1), [mail])
  t.match(logged(), [
    { level: 40, msg: 'A mail could not be sent: another attempt follows', userId: 'id of ada', err: { code: 'EENVELOPE', responseCode: 451, message: 'cannot deliver to <[address]>: A link:\n\nhttps://example.com/#token=[token]\n' } },
    { level: 40, msg: 'A mail could not be sent: another attempt follows', err: { message: 'busy' } },
  ])
  for (const secret of [mail.to, 't'.repeat(43)]) t.notOk(lines.join('').includes(secret))
})

t.test('4.7 a mail is given up after several attempts, or at once after a permanent error', async (t) => {
  let attempts = 0
  const server = await startMailServer(t, (to) => { attempts++; return to.startsWith('nobody') ? 550 : 450 })
  const { mailer, close } = createSmtpMailer(server.url, FROM)
  t.teardown(close)
  const { app, lines, logged } = await start(t, mailer)
  app.usherMailer!.send(mail, 'id')
  await until('given up', () => lines.length === 3)
  t.same(logged().map(({ level, err }) => [level, err.responseCode]), [[40, 450], [40, 450], [50, 450]])
  t.equal(attempts, 3)
  app.usherMailer!.send({ ...mail, to: 'nobody@example.com' }, 'id')
  await until('given up', () => lines.length === 4)
  t.match(logged()[3], { level: 50, msg: 'A mail could not be sent', err: { responseCode: 550 } })
  t.equal(attempts, 4)
  t.notMatch(lines.join(''), 'nobody@example.com')
})

t.test('4.7 a mailer that hangs, or a mail server that does not respond, is given up after a time', async (t) => {
  const { app, lines, logged } = await start(t, () => new Promise(() => {}), { attemptMs: 1, pauses: [] })
  // More mails than the mailer sends concurrently.
  for (let index = 0; index < 10; index++) app.usherMailer!.send(mail, 'id')
  await until('given up', () => lines.length === 10)
  t.match(logged()[9], { level: 50, err: { message: 'the mailer did not finish within 1 ms' } })

  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const { mailer, close } = createSmtpMailer(`smtp://127.0.0.1:${(silent.address() as AddressInfo).port}?greetingTimeout=1`, FROM)
  t.teardown(close)
  await t.rejects(Promise.resolve(mailer(mail)), { code: 'ETIMEDOUT' })
})

t.test('4.7 the number of waiting mails is limited', async (t) => {
  const { app, lines, logged } = await start(t, () => new Promise(() => {}), { drainMs: 1 })
  for (let index = 0; index < 1001; index++) app.usherMailer!.send(mail, `id ${index}`)
  t.match(logged(), [{ level: 50, msg: 'A mail is not sent because too many mails are waiting', userId: 'id 1000' }])
  await app.close()
  t.match(logged()[1], { level: 50, msg: 'Mails are lost because they were not sent before the app closed', mails: 1000 })
  t.equal(lines.length, 2)
})

t.test('4.7 stopping the node completes mails in progress and tries waiting ones once more', async (t) => {
  const inbox = createMailer()
  let fails = true
  const { app, lines } = await start(t, async (mail) => {
    if (fails) throw new Error('busy')
    await inbox.mailer(mail)
  }, { pauses: [60_000] })
  app.usherMailer!.send(mail, 'id')
  await until('it waits', () => lines.length === 1)
  fails = false
  app.usherMailer!.send({ ...mail, to: 'bob@example.com' }, 'id')
  await app.close()
  t.same(inbox.mails.map(({ to }) => to).sort(), ['ada@example.com', 'bob@example.com'])
})

t.test('4.7 without a mailer the plugin provides none', async (t) => {
  const { app } = await start(t, undefined)
  t.equal(app.usherMailer, undefined)
})

t.test('4.7 mails of the node', async (t) => {
  const url = await createDatabase(t)
  const admin = { email: 'root@example.com', password: 'horse battery staple' }
  const start = (t: Test, settings: Record<string, string> = {}) => startNode(t, { cwd: t.testdir(), settings: { DATABASE_URL: url, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, ...settings } })
  const post = (node: ServingNode, path: string, body: object) => node.fetch(`/api/auth/password-reset${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

  await t.test('4.7 without SMTP_URL the link is printed on the terminal and leads to a page of the node', async (t) => {
    const node = await start(t, { PRINT_SECRETS: 'true' })
    t.equal((await post(node, '', admin)).status, 202)
    const [, link = '', token = ''] = await node.said(/^Mail to root@example\.com: Set a new password\n[^]*^(http.+)#token=([\w-]{43})$/m)
    t.equal(link, `${node.url}/set-password`)
    t.match(await (await fetch(link)).text(), '<title>Set your password · Usher</title>')
    t.same([(await post(node, '/confirm', { token, password: 'first of the new ones' })).status, (await post(node, '/confirm', { token, password: 'second of the new ones' })).status], [204, 400])
    await node.login({ ...admin, password: 'first of the new ones' })
    t.notOk(node.stdout.includes(token), 'not in the log')
    t.equal(await stopNode(node), 0)
  })

  await t.test('4.7 it is not printed if the output is not a terminal', async (t) => {
    const node = await start(t)
    t.equal((await post(node, '', admin)).status, 202)
    t.equal(await stopNode(node), 0)
    t.match(node.stdout, 'Links to set a password are not sent: there is no mailer')
    t.notMatch(node.stderr, 'Mail to')
  })

  await t.test('4.7 with SMTP_URL it is mailed, even if the node stops meanwhile', async (t) => {
    const server = await startMailServer(t)
    const node = await start(t, { NODE_ENV: 'production', SMTP_URL: server.url, MAIL_FROM: FROM, PUBLIC_URL: 'https://api.example.com/', SIGN_UP: 'true' })
    t.equal((await post(node, '', admin)).status, 202)
    const signUp = { name: 'Ada', email: 'ada@example.com', password: 'violet engine notes' }
    t.equal((await node.fetch('/api/auth/sign-up', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(signUp) })).status, 202)
    t.equal(await stopNode(node), 0)
    const mail = server.mails.find(({ to }) => to === admin.email)
    const signedUp = server.mails.find(({ to }) => to === signUp.email)
    t.match(signedUp!.text, `https://api.example.com/sign-up/confirm#token=${tokenIn(signedUp!)}\n`)
    t.match(mail!.text, `https://api.example.com/set-password#token=${tokenIn(mail!)}\n`)
    t.notMatch(`${node.stdout}${node.stderr}`, tokenIn(mail!))
  })
})
