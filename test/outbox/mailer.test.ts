import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { NIL as ID } from 'uuid'
import { insertMail } from '../../db/outbox/mails.ts'
import outbox from '../../plugins/outbox/index.ts'
import { createSmtpMailer } from '../../node/mail/smtp.ts'
import type { Mail, Mailer } from '../../schema/options/options.ts'
import type { Deadlines } from '../../schema/options/deadlines.ts'
import { openCore } from '../helpers/core.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { slow, slowNode } from '../helpers/deadlines.ts'
import { createMailer, startMailServer, startRefusingServer, type Replies } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const FROM = 'Usher <usher@example.com>'
const SECRET = 'a secret of the test'
const to = 'ada@example.com'
const content = { subject: 'Hello', text: `A link:\n\nhttps://example.com/#token=${'t'.repeat(43)}\n` }
const mail: Mail = { to, ...content }
const DAY = 86400

/** Opens an outbox with a mailer on a bare Fastify, and collects the level, message and error of each log entry. */
async function start (
  t: Test, mailer: Mailer | undefined,
  { schema = uniqueSchema(t.name), secret = SECRET, deadlines = slow }: {
    schema?: string, secret?: string | null, deadlines?: Partial<Deadlines>
  } = {}
) {
  const databaseUrl = await testDatabaseUrl()
  // test/throttle/mail-limits.test.ts tests the real limits.
  const throttle = { mail: { burst: 1000 } }
  const options = {
    databaseUrl, schema, throttle, deadlines, ...mailer && { mailer }, ...secret !== null && { secret },
  }
  const { app, lines } = await openCore(t, options)
  await app.register(outbox, { shortestMs: 1, longestMs: 10 })
  await app.ready()
  const sql = openSql(t, { options: { databaseUrl, schema } })
  await sql`insert into users (id, name, email, role) values (${ID}, 'Ada', ${to}, 'user') on conflict do nothing`
  /** Stores a mail in the outbox, as the change that causes it does. */
  const send = (to: string | null, { seconds = DAY, subject = content.subject } = {}) => {
    const rendered = { ...content, subject, name: 'account-deleted', several: { subject: '', more: '' } } as const
    return insertMail(app.usherDatabase.db, app.usherOutbox.mails.mailer!.prepare(rendered, seconds), to, ID)
  }
  return {
    app,
    lines,
    sql,
    schema,
    send,
    logged: () => lines.map((line) => JSON.parse(line)),
    empty: () => until('an empty outbox', async () => (await sql`select 1 from outbox`).length === 0),
  }
}

t.test('4.7 a mail server gets a plain-text mail from the node\'s sender address', async (t) => {
  const server = await startMailServer(t)
  const { mailer, close } = createSmtpMailer(server.url, FROM, slowNode)
  t.teardown(close)
  const { send, empty } = await start(t, mailer)
  await send(to)
  t.same(await server.of(to, 1), [mail])
  t.match(server.raw[0], /^From: Usher <usher@example\.com>\r$/m)
  t.match(server.raw[0], /^Auto-Submitted: auto-generated\r$/m)
  t.match(server.raw[0], /^Content-Type: text\/plain; charset=utf-8\r$/m)

  await t.test('4.7 an address cannot add headers or recipients', async (t) => {
    const evil = [
      'eve@example.com\r\nBcc: all@example.com', 'eve@example.com, all@example.com', 'Eve <all@example.com>',
    ]
    for (const to of evil) await send(to, { subject: 'Hello\r\nBcc: all@example.com', seconds: 1 })
    await empty()
    t.notOk(server.mails.some(({ to }) => to === 'all@example.com'))
    t.notOk(server.raw.some((message) => /^bcc:/mi.test(message)))
  })
})

t.test('4.7 a failed mail is sent again, and logged without the address and the link', async (t) => {
  const failures = [Object.assign(
    new Error(`cannot deliver to <ada@example.com>: ${content.text}`), { code: 'EENVELOPE', responseCode: 451 }
  ), 'busy']
  const inbox = createMailer()
  const { send, lines, logged } = await start(t, async (mail) => {
    if (failures.length > 0) throw failures.shift()
    await inbox.mailer(mail)
  })
  await send(to)
  t.same(await inbox.of(to, 1), [mail])
  t.match(logged(), [
    {
      level: 40,
      msg: 'A mail could not be sent: another attempt follows',
      userId: ID,
      err: {
        code: 'EENVELOPE',
        responseCode: 451,
        message: 'cannot deliver to <[address]>: A link:\n\nhttps://example.com/#token=[token]\n',
      },
    },
    { level: 40, msg: 'A mail could not be sent: another attempt follows', err: { message: 'busy' } },
  ])
  for (const secret of [to, 't'.repeat(43)]) t.notOk(lines.join('').includes(secret))
})

nightly('4.7 a mail is given up when its link expires, or at once after a permanent error', async (t) => {
  let attempts = 0
  const server = await startMailServer(t, (to) => { attempts++; return to.startsWith('nobody') ? 550 : 450 })
  const { mailer, close } = createSmtpMailer(server.url, FROM, slowNode)
  t.teardown(close)
  const { send, sql, lines, logged, empty } = await start(t, mailer)
  await send('nobody@example.com')
  await empty()
  t.match(logged(), [{ level: 50, msg: 'A mail could not be sent', err: { responseCode: 550 } }])
  t.equal(attempts, 1)
  t.notMatch(lines.join(''), 'nobody@example.com')

  await send(to)
  await until('an attempt', () => logged().length > 1)
  t.match(logged()[1], { level: 40, err: { responseCode: 450 } })
  await sql`update outbox set expires_at = now()`
  await empty()
  t.match(logged().at(-1), { level: 50, msg: 'A mail could not be sent' })
  t.ok(attempts > 1)
  t.equal((await sql`select from failed_deliveries where type = 'mail'`).length, 2, 'both are listed')
})

// What a mail server says, and whether that is about the recipient or the content.
const refusals: [when: string, replies: Replies, isFinal: boolean][] = [
  ['the node in its greeting', { greeting: '554 5.7.1 blocked by policy' }, false],
  ['a login', { 'AUTH PLAIN': '535 5.7.8 Authentication credentials invalid' }, false],
  ['a sender', { 'MAIL FROM': '550 5.7.1 you may not send as this address' }, false],
  ['a sender who is unknown', { 'MAIL FROM': '553 5.1.8 sender address rejected' }, false],
  ['a session without a login', { 'RCPT TO': '530 5.7.0 Authentication required' }, false],
  ['a sender, in reply to the recipient', { 'RCPT TO': '550 5.1.8 sender address rejected: domain not found' }, false],
  ['a relay', { 'RCPT TO': '554 5.7.1 relay access denied' }, false],
  ['a relay, without an enhanced code', { 'RCPT TO': '554 relay access denied' }, false],
  ['a sender, in reply to the mail', { message: '554 Message rejected: Email address is not verified' }, false],
  ['a sender, in reply to the mail, with an enhanced code', { message: '550 5.7.60 not as this sender' }, false],
  ['a recipient', { 'RCPT TO': '550 5.1.1 no such mailbox' }, true],
  ['a recipient, without an enhanced code', { 'RCPT TO': '550 no such mailbox' }, true],
  ['a mailbox that is disabled', { 'RCPT TO': '554 5.2.1 mailbox disabled' }, true],
  ['a recipient, in reply to the mail', { message: '550 5.1.1 no such mailbox' }, true],
  ['the content', { message: '554 5.6.0 malformed content' }, true],
  ['the size', { message: '552 too large' }, true],
]
nightly('4.7 only a mail server that refuses the recipient or the content ends the attempts', async (t) => {
  let current: Mailer
  const { send, logged, empty } = await start(t, (mail) => current(mail))
  for (const [what, replies, isFinal] of refusals) {
    const effect = isFinal ? 'ends them' : 'gets the mail when that is mended'
    await t.test(`4.7 one that refuses ${what} ${effect}`, async (t) => {
      const server = await startRefusingServer(t, replies)
      const { mailer, close } = createSmtpMailer(server.url, FROM, slowNode)
      t.teardown(close)
      current = mailer
      const count = logged().length
      await send(to)
      await until('an attempt', () => logged().length > count)
      const [reply = ''] = Object.values(replies)
      const msg = `A mail could not be sent${isFinal ? '' : ': another attempt follows'}`
      t.match(logged()[count], { level: isFinal ? 50 : 40, msg, err: { responseCode: Number(reply.slice(0, 3)) } })
      server.mend()
      await empty()
      t.equal(server.accepted, isFinal ? 0 : 1)
    })
  }
})

nightly('4.7 a mail whose link has expired is not sent', async (t) => {
  const inbox = createMailer()
  const { send, logged, empty } = await start(t, inbox.mailer)
  await send(to, { seconds: 0 })
  await empty()
  t.same(inbox.mails, [])
  t.match(
    logged(), [{ level: 50, msg: 'A mail could not be sent', userId: ID, err: { message: 'the mail has expired' } }]
  )
})

nightly('12.5 a notice without a link is sent to a disabled user, but to nobody after the user is deleted', async (t) => {
  const inbox = createMailer()
  const { send, sql, empty } = await start(t, inbox.mailer)
  await sql`update users set disabled = true where id = ${ID}`
  await send(to)
  t.same(await inbox.of(to, 1), [mail])
  await sql`delete from users where id = ${ID}`
  await send(to)
  await empty()
  t.equal(inbox.mails.length, 1)
})

nightly('4.7 a mailer that hangs, or a mail server that does not respond, is given up after a time', async (t) => {
  const { send, logged } = await start(t, () => new Promise(() => {}), { deadlines: { ...slow, mail: 1 } })
  // More mails than the mailer sends concurrently.
  for (let index = 0; index < 10; index++) await send(to)
  await until('attempts', () => logged().length >= 10)
  t.match(logged()[9], { level: 40, err: { message: 'the attempt did not finish within 1 ms' } })

  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const { mailer, close } = createSmtpMailer(
    `smtp://127.0.0.1:${(silent.address() as AddressInfo).port}?greetingTimeout=1`, FROM
  )
  t.teardown(close)
  await t.rejects(Promise.resolve(mailer(mail)), { code: 'ETIMEDOUT' })
})

t.test('4.7 a mail waits in the outbox, encrypted, and is deleted when another node has sent it', async (t) => {
  const { app, send, sql, schema, empty, lines } = await start(t, async () => { throw new Error('busy') })
  await send(to)
  await send(null)
  await until('an attempt', () => lines.length > 0)
  await app.close()
  const [row, ...others] = await sql`select data, lease from outbox`
  t.same(others, [], 'a mail to nobody is deleted at once')
  t.match(row!['data'].content, /^sealed1\./)
  t.notMatch(JSON.stringify(row), 't'.repeat(43))

  await t.test('4.7 not by a node with another secret', async (t) => {
    const inbox = createMailer()
    const other = await start(t, inbox.mailer, { schema, secret: 'the secret of others' })
    await until('an attempt', () => other.lines.length > 0)
    t.match(other.logged()[0], { level: 40, msg: 'A mail could not be sent: another attempt follows' })
    await other.app.close()
    t.same(inbox.mails, [])
  })

  const inbox = createMailer()
  await start(t, inbox.mailer, { schema })
  t.same(await inbox.of(to, 1), [mail])
  await empty()
})

nightly('4.7 closing the app completes the mails that are being sent, and those of the last requests', async (t) => {
  const inbox = createMailer()
  const { promise, resolve } = Promise.withResolvers<void>()
  let begun = false
  const { app, send, sql } = await start(t, async (mail) => {
    begun = true
    await promise
    await inbox.mailer(mail)
  })
  await send(to)
  await until('it is being sent', () => begun)
  const closed = app.close()
  resolve()
  await closed
  t.same(inbox.mails, [mail])
  t.same(await sql`select 1 from outbox`, [])
})

nightly('4.7 without a mailer the plugin provides none', async (t) => {
  const { app } = await start(t, undefined, { secret: null })
  t.equal(app.usherOutbox.mails.mailer, undefined)
})
