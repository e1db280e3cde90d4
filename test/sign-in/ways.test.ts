import t, { type Test } from 'tap'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import type { Authenticator } from '../helpers/authenticator.ts'
import type { LoggedIn } from '../helpers/app.ts'
import { createMailer, tokenIn } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { cookiesOf, openPasskeys } from '../helpers/passkeys.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const inbox = createMailer()
const usher = await openPasskeys(t, { mailer: inbox.mailer, loginMail: true })
const { inject, createUser, register, begin, finish } = usher
const sql = openSql(t, usher)
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** A user, with what is needed for each way in. */
interface Subject extends LoggedIn {
  recoveryCodes: string[]
  /** Returns a code that was not used. */
  code (): string
  authenticator: Authenticator
  passkeyId: string
}

async function createSubject (withApp: boolean): Promise<Subject> {
  const user = await createUser()
  // An account that nobody has verified loses what was set up before when its owner logs in by mail.
  await sql`update users set email_verified = true where id = ${user.id}`
  const { authenticator, id: passkeyId } = await register(user)
  if (!withApp) return { ...user, authenticator, passkeyId, recoveryCodes: [], code: () => '000000' }
  const { secret } = (await inject('POST', '/api/auth/totp', { headers: user.headers })).json()
  const used = Math.floor(Date.now() / 30_000)
  const payload = { code: codeOf(secret, used) }
  const { recoveryCodes, token } =
    (await inject('POST', '/api/auth/totp/confirm', { headers: user.headers, payload })).json()
  const code = () => codeOf(secret, used + 1)
  return { ...user, token, headers: bearer(token), authenticator, passkeyId, recoveryCodes, code }
}

const sendPassword = ({ email, password }: Subject) =>
  inject('POST', '/api/auth/login', { payload: { email, password } })
const complete = (payload: object, cookie?: string) =>
  inject('POST', '/api/auth/login/second-factor', { payload, headers: cookie === undefined ? {} : { cookie } })

const confirmMail = (payload: object) => inject('POST', '/api/auth/login/mail/confirm', { payload })

/** Asks for a mail. Returns what is in it, and the id that belongs to the code. */
async function askForMail ({ email }: Subject) {
  const response = await inject('POST', '/api/auth/login/mail', { payload: { email, cookie: false } })
  const find = () => inbox.mails.findLast(({ to, subject }) => to === email && subject.startsWith('Log in'))
  await until('the mail', () => find() !== undefined)
  const mail = find()!
  const code = /^\d{4} \d{4}$/m.exec(mail.text)![0]
  return { token: tokenIn(mail), code, loginId: response.json().loginId as string }
}

// Each way in, in two steps: what comes before the state of the account changes, and what follows it.
const ways: Record<
  string, { needsApp?: boolean, start: (subject: Subject) => Promise<() => Promise<{ statusCode: number }>> }
> = {
  password: { start: async (subject) => () => sendPassword(subject) },
  passkey: {
    start: async ({ authenticator }) => {
      const { options, cookie } = await begin()
      const credential = authenticator.get(options)
      return () => finish(credential, cookie)
    },
  },
  'code of an app': {
    needsApp: true,
    start: async (subject) => {
      const { challenge } = (await sendPassword(subject)).json()
      return () => complete({ challenge, code: subject.code() })
    },
  },
  'recovery code': {
    needsApp: true,
    start: async (subject) => {
      const { challenge } = (await sendPassword(subject)).json()
      return () => complete({ challenge, recoveryCode: subject.recoveryCodes[0] })
    },
  },
  'passkey as second factor': {
    needsApp: true,
    start: async (subject) => {
      const { challenge } = (await sendPassword(subject)).json()
      const { options, cookie } = await begin()
      return () => complete({ challenge, passkey: subject.authenticator.get(options) }, cookie)
    },
  },
  'link of a mail': {
    start: async (subject) => {
      const { token } = await askForMail(subject)
      return () => confirmMail({ token })
    },
  },
  'code of a mail': {
    start: async (subject) => {
      const { code, loginId } = await askForMail(subject)
      return () => confirmMail({ code, loginId })
    },
  },
  'mail, then code of an app': {
    needsApp: true,
    start: async (subject) => {
      const { token } = await askForMail(subject)
      const { challenge } = (await confirmMail({ token })).json()
      return () => complete({ challenge, code: subject.code() })
    },
  },
  host: {
    start: async ({ id }) => () => usher.app.usher.sessions.start(id, { amr: ['mfa'] })
      .then(() => ({ statusCode: 200 }), ({ statusCode }) => ({ statusCode })),
  },
}

const states: Record<string, (subject: Subject) => Promise<unknown>> = {
  disabled: ({ id }) =>
    inject('PATCH', `/api/users/${id}`, { headers: usher.admin.headers, payload: { disabled: true } }),
  deleted: ({ id }) => inject('DELETE', `/api/users/${id}`, { headers: usher.admin.headers }),
}

const sessionsOf = async ({ id }: Subject) => (await sql`select id from sessions where user_id = ${id}`).length

async function expectNoSession (
  t: Test, subject: Subject, finish: () => Promise<{ statusCode: number }>
): Promise<void> {
  const before = await sessionsOf(subject)
  const { statusCode } = await finish()
  t.ok(statusCode >= 400 && statusCode < 500, `${statusCode}`)
  t.equal(await sessionsOf(subject), before, 'no session')
}

for (const [name, { needsApp = false, start }] of Object.entries(ways)) {
  t.test(`16.1 ${name}: a session, and none for a user who is disabled or deleted meanwhile`, async (t) => {
    const works = await createSubject(needsApp)
    t.equal((await (await start(works))()).statusCode, 200, 'otherwise there is one')
    for (const [state, enter] of Object.entries(states)) {
      await t.test(state, async (t) => {
        const subject = await createSubject(needsApp)
        const finish = await start(subject)
        await enter(subject)
        await expectNoSession(t, subject, finish)
      })
    }
  })
}

t.test('16.1 a second factor is due: neither the password nor a mail nor the host alone start a session', async (t) => {
  const subject = await createSubject(true)
  await expectNoSession(t, subject, await ways['link of a mail']!.start(subject))
  await expectNoSession(t, subject, await ways['code of a mail']!.start(subject))
  await expectNoSession(t, subject, () => sendPassword(subject))
  const { sessions } = usher.app.usher
  await expectNoSession(t, subject, () => sessions.start(subject.id)
    .then(() => ({ statusCode: 200 }), ({ statusCode }) => ({ statusCode })))
})

t.test('16.1 a passkey is removed: neither a login nor a second factor by it starts a session', async (t) => {
  for (const way of ['passkey', 'passkey as second factor'] as const) {
    const subject = await createSubject(way !== 'passkey')
    const finish = await ways[way]!.start(subject)
    const { statusCode } = await inject(
      'DELETE', `/api/auth/passkeys/${subject.passkeyId}`, { headers: subject.headers }
    )
    t.equal(statusCode, 204)
    await expectNoSession(t, subject, finish)
  }
})

t.test('16.1 the account is locked: the right password starts no session, and a passkey does', async (t) => {
  const strict = await openPasskeys(t, { throttle: { account: { burst: 2, perMinute: 0.01 } } }, { trustProxy: true })
  const user = await strict.createUser()
  const { authenticator } = await strict.register(user)
  const attempt = async (password: string) => (await strict.inject('POST', '/api/auth/login', {
    headers: { 'x-forwarded-for': '203.0.113.7' }, payload: { email: user.email, password },
  })).statusCode
  t.strictSame([await attempt('wrong'), await attempt('wrong'), await attempt(user.password)], [401, 401, 429])
  t.equal((await openSql(t, strict)`select id from sessions where user_id = ${user.id}`).length, 1, 'that of before')
  t.equal((await strict.logIn(authenticator)).statusCode, 200)
})

t.test('16.1 somebody else has prepared the account: what they have set up starts no session after a login by mail', async (t) => {
  for (const way of ['password', 'passkey', 'code of an app', 'recovery code'] as const) {
    const subject = await createSubject(ways[way]!.needsApp ?? false)
    await sql`update users set email_verified = false where id = ${subject.id}`
    const finish = await ways[way]!.start(subject)
    const { token } = await askForMail(subject)
    t.equal((await confirmMail({ token })).statusCode, 200)
    await expectNoSession(t, subject, finish)
    t.equal(await sessionsOf(subject), 1, 'that of the owner')
  }
})

nightly('16.1 the account is repaired: a login that waits for its second factor, or for a mail, starts no session', async (t) => {
  for (const way of ['recovery code', 'mail, then code of an app', 'link of a mail', 'code of a mail'] as const) {
    const subject = await createSubject(ways[way]!.needsApp ?? false)
    const finish = await ways[way]!.start(subject)
    await inject('DELETE', `/api/users/${subject.id}/sessions`, { headers: usher.admin.headers })
    await expectNoSession(t, subject, finish)
  }
})

t.test('16.1 a logout of the replaced session while a login runs leaves one session, that of the login', async (t) => {
  const subject = await createSubject(false)
  await sql`delete from sessions where user_id = ${subject.id}`
  const first = await sendPassword(subject)
  const cookie = cookiesOf(first)
  const [login] = await Promise.all([
    inject(
      'POST', '/api/auth/login', { headers: { cookie }, payload: { email: subject.email, password: subject.password } }
    ),
    inject('POST', '/api/auth/logout', { headers: { cookie } }),
  ])
  t.equal(login.statusCode, 200)
  const { token } = login.json()
  t.equal((await inject('GET', '/api/protected', { headers: bearer(token) })).statusCode, 200)
  t.equal((await inject('GET', '/api/protected', { headers: bearer(first.json().token) })).statusCode, 401)
  t.equal(await sessionsOf(subject), 1)
})
