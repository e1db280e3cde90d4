import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import type { UsherOptions } from '../../../app.ts'
import { hashAddress } from '../../../db/throttle/login-failures.ts'
import { createUsher } from '../../helpers/app.ts'
import { createMailer, tokenIn } from '../../helpers/mail.ts'
import { nightly } from '../../helpers/nightly.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

const plenty = { burst: 10_000, perMinute: 10_000 }
const throttle = {
  account: plenty,
  address: plenty,
  loginMail: plenty,
  secondFactor: plenty,
  reset: plenty,
  mail: { burst: 3, perMinute: 0.01 },
  verifiedMail: { burst: 3, perMinute: 0.01 },
}
const newEmail = () => `${randomUUID()}@example.com`

/** Starts a node with these limits. Each request comes from the address that it names. */
async function start (t: Test, limits: UsherOptions['throttle'] = {}) {
  const inbox = createMailer()
  const lines: string[] = []
  const usher = await createUsher(t, {
    mailer: inbox.mailer, loginMail: true, throttle: { ...throttle, ...limits },
  }, { trustProxy: true, logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
  const sql = openSql(t, usher)
  const { inject } = usher
  const send = (path: string, payload: object, { address = '198.51.100.1', cookie }: {
    address?: string, cookie?: string
  } = {}) =>
    inject('POST', `/api/auth/login/mail${path}`, {
      payload, headers: { 'x-forwarded-for': address, ...cookie && { cookie } },
    })
  return {
    ...usher,
    sql,
    inbox,
    lines,
    send,
    loginMails: (email: string) => inbox.mails.filter(({ to, subject }) => to === email && subject.startsWith('Log in')),
    /** Asks for mails, and resolves with the ids when all are stored. */
    async ask (email: string, count: number, address?: string): Promise<string[]> {
      const stored = async () => (await sql`select 1 from login_links`).length
      const before = await stored()
      const ids = []
      for (let index = 0; index < count; index++) {
        const response = await send('', { email, cookie: false }, { ...address && { address } })
        t.equal(response.statusCode, 202)
        ids.push(response.json().loginId as string)
      }
      await until('the mails are stored', async () => await stored() === before + count)
      await until('an empty outbox', async () => (await sql`select 1 from outbox`).length === 0)
      return ids
    },
  }
}

nightly('16.6 who asks for mails until the limit of the recipient is reached does not lock the owner out', async (t) => {
  const { createUser, sql, ask, send, loginMails, inject } = await start(t)
  const user = await createUser()
  await sql`update users set email_verified = true where id = ${user.id}`
  // A code that the owner has got before.
  const [own] = await ask(user.email, 1)
  const [mail] = loginMails(user.email)
  await ask(user.email, 10, '203.0.113.9')
  t.equal(loginMails(user.email).length, 3, 'no more is sent')
  // The owner asks once more, gets no mail, and uses the link of any that has arrived.
  await ask(user.email, 1)
  t.equal(loginMails(user.email).length, 3)
  for (const { text } of loginMails(user.email)) {
    const { statusCode } = await send('/check', { token: /#token=([\w-]+)/.exec(text)![1] })
    t.equal(statusCode, 200, 'each link works')
  }
  const code = /^\d{4} \d{4}$/m.exec(mail!.text)![0]
  t.equal((await send('/confirm', { code, loginId: own })).statusCode, 200, 'and so does the code from before')
  // Nor are other mails affected, since each kind has a limit of its own.
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  await until('the link', async () => (await sql`select 1 from password_links where user_id = ${user.id}`).length === 1)
})

t.test('16.6 codes by brute force: with many requests, and from many networks, the address has a limit of its own', async (t) => {
  const { createUser, sql, ask, send, loginMails } = await start(t, {
    secondFactor: { burst: 6, perMinute: 0.01 }, verifiedMail: plenty,
  })
  const user = await createUser()
  await sql`update users set email_verified = true where id = ${user.id}`
  const ids = await ask(user.email, 4, '203.0.113.9')
  const unknown = await ask(newEmail(), 4, '203.0.113.9')
  for (const mallory of [ids, unknown]) {
    const statuses = []
    for (let attempt = 0; attempt < 8; attempt++) {
      const address = `203.0.${attempt}.9`
      const loginId = mallory[attempt % mallory.length]
      statuses.push((await send('/confirm', { code: '00000000', loginId }, { address })).statusCode)
    }
    t.strictSame(
      statuses, [...Array(6).fill(401), 429, 429], 'the same for an address without an account'
    )
  }
  // The owner asks at home, where the account was used before: failures from elsewhere do not matter.
  await sql`insert into recognised_networks (user_id, network) values (${user.id}, '198.51.100.1')`
  const [own] = await ask(user.email, 1)
  const code = /^\d{4} \d{4}$/m.exec(loginMails(user.email).at(-1)!.text)![0]
  t.equal((await send('/confirm', { code, loginId: own }, { address: '192.0.2.1' })).statusCode, 429)
  t.equal((await send('/confirm', { code, loginId: own })).statusCode, 200)
  // From elsewhere, the link works.
  await ask(user.email, 1)
  const token = tokenIn(loginMails(user.email).at(-1)!)
  t.equal((await send('/confirm', { token }, { address: '192.0.2.1' })).statusCode, 200)
})

nightly('16.6 a network has a limit of requests, and one of failed codes, which right ones do not count toward', async (t) => {
  const { createUser, sql, ask, send, loginMails } = await start(t, {
    loginMail: { burst: 7, perMinute: 0.01 }, address: { burst: 2, perMinute: 0.01 }, verifiedMail: plenty,
  })
  const user = await createUser()
  await sql`update users set email_verified = true where id = ${user.id}`
  for (let login = 0; login < 4; login++) {
    const [loginId] = await ask(user.email, 1)
    const code = /^\d{4} \d{4}$/m.exec(loginMails(user.email).at(-1)!.text)![0]
    t.equal((await send('/confirm', { code, loginId })).statusCode, 200)
  }
  const wrong = async () => (await send('/confirm', { code: '00000000', loginId: 'x' })).statusCode
  t.strictSame([await wrong(), await wrong(), await wrong()], [401, 401, 429])
  const request = async () => (await send('', { email: newEmail() })).statusCode
  t.strictSame([await request(), await request(), await request(), await request()], [202, 202, 202, 429])
  t.equal((await send('', { email: newEmail() }, { address: '192.0.2.1' })).statusCode, 202, 'others can ask')
})

nightly('16.6 what is pending is limited per address and in all, and neither takes a mail from its owner', async (t) => {
  const { createUser, sql, ask, loginMails, lines, send } = await start(t, { verifiedMail: plenty })
  const user = await createUser()
  await sql`update users set email_verified = true where id = ${user.id}`
  await ask(user.email, 22)
  t.equal(loginMails(user.email).length, 20)
  t.match(lines.join(''), 'its address has too many')
  const address = hashAddress(user.email)
  t.equal((await sql`
    select 1 from login_links where address_hash = ${address} and user_id is not null`).length, 20)
  await sql`
    insert into login_links (hash, code_hash, address_hash, expires_at)
    select sha256(i::text::bytea), 'x', 'x', now() + interval '1 minute' from generate_series(1, 10000) i`
  const other = await createUser()
  t.equal((await send('', { email: other.email })).statusCode, 202)
  await until('the refusal', () => lines.join('').includes('too many others are pending'))
  t.strictSame(loginMails(other.email), [])
  t.equal((await send('/check', { token: tokenIn(loginMails(user.email)[0]!) })).statusCode, 200)
  await sql`update login_links set expires_at = now() where user_id is null`
  await ask(other.email, 1)
  t.equal(loginMails(other.email).length, 1)
})

nightly('16.6 what has expired does not work, and is deleted', async (t) => {
  const { createUser, sql, ask, send, loginMails, options } = await start(t)
  const user = await createUser()
  const [loginId] = await ask(user.email, 1)
  const mail = loginMails(user.email)[0]!
  await sql`update login_links set expires_at = now()`
  const code = /^\d{4} \d{4}$/m.exec(mail.text)![0]
  t.equal((await send('/confirm', { code, loginId })).statusCode, 401)
  t.equal((await send('/confirm', { token: tokenIn(mail) })).statusCode, 400)
  t.equal((await send('/check', { token: tokenIn(mail) })).statusCode, 400)
  await createUsher(t, options)
  await until('it is deleted', async () => (await sql`select 1 from login_links`).length === 0)
})
