import { randomUUID } from 'node:crypto'
import type { LightMyRequestResponse } from 'fastify'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { codeOf } from '../../../plugins/sign-in/totp/codes.ts'
import { createUsher, sharedUsher, type LoggedIn, type TestUsher } from '../../helpers/app.ts'
import { createMailer, sharedInbox, tokenIn } from '../../helpers/mail.ts'
import { nightly } from '../../helpers/nightly.ts'
import type { Mail } from '../../../schema/options/options.ts'
import { withPasskeys } from '../../helpers/passkeys.ts'
import { openSql, untilBlocked } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

const invalidLink = { errors: ['token is invalid or has expired'] }
const invalidCode = {
  error: 'The code is wrong, was used, has expired, or belongs to another browser', code: 'INVALID_LOGIN_CODE',
}

const ORIGIN = 'https://id.example.com'
const inbox = createMailer()
const usher = await createUsher(t, {
  mailer: inbox.mailer, publicUrl: ORIGIN, loginMail: true,
}, { trustProxy: true })
const { admin } = usher
const sql = openSql(t, usher, 4)
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const newEmail = () => `${randomUUID()}@example.com`

/** What a browser that has asked for a mail has, and what is in the mail. */
interface Asked { cookie: string, token: string, code: string }

const cookieIn = (response: LightMyRequestResponse, name: string): string =>
  new RegExp(`${name}=[^;]+`).exec(`${response.headers['set-cookie']}`)![0]
const codeIn = (text: string): string => /^(\d{4} \d{4})$/m.exec(text)![1]!

/** Resolves with the latest of at least `count` mails to an address whose subject begins like this. */
async function mailTo (email: string, subject: 'Log in' | 'Set' | 'The earlier password', count = 1): Promise<Mail> {
  const found = () => inbox.mails.filter((mail) => mail.to === email && mail.subject.startsWith(subject))
  await until(`${count} mails "${subject}"`, () => found().length >= count)
  return found().at(-1)!
}

/** Returns the requests to an app with the option `loginMail`. */
function openLogins ({ inject, createUser }: TestUsher) {
  const request = (email: string, { cookie, ...rest }: { cookie?: string, payload?: object, address?: string } = {}) =>
    inject('POST', '/api/auth/login/mail', {
      payload: { email, ...rest.payload },
      headers: { ...cookie && { cookie }, ...rest.address && { 'x-forwarded-for': rest.address } },
    })
  const confirm = (payload: object, { cookie, address }: { cookie?: string, address?: string } = {}) =>
    inject('POST', '/api/auth/login/mail/confirm', {
      payload, headers: { ...cookie && { cookie }, ...address && { 'x-forwarded-for': address } },
    })
  return {
    request,
    confirm,
    check: (token: string, cookie?: string) =>
      inject('POST', '/api/auth/login/mail/check', { payload: { token }, ...cookie && { headers: { cookie } } }),

    /** Asks for a mail. `count` is the number of such mails to the address so far, this one included. */
    async ask (email: string, { count = 1, ...rest }: { count?: number, cookie?: string } = {}): Promise<Asked> {
      const response = await request(email, rest)
      t.equal(response.statusCode, 202)
      const mail = await mailTo(email, 'Log in', count)
      return { cookie: cookieIn(response, 'usher_login_mail'), token: tokenIn(mail), code: codeIn(mail.text) }
    },

    /** Creates a user whose address is verified. */
    async createVerified (): Promise<LoggedIn> {
      const user = await createUser()
      await sql`update users set email_verified = true where id = ${user.id}`
      return user
    },
  }
}

const { request, confirm, check, ask, createVerified } = openLogins(usher)
const { inject, createUser } = usher
const statusOf = async (response: Promise<LightMyRequestResponse>) => (await response).statusCode
const sessionsOf = async (id: string) => (await sql`select id from sessions where user_id = ${id}`).length
const actionsOf = async (id: string) =>
  (await sql`select action from audit where user_id = ${id} order by id`).map(({ action }) => action)
const wrongFor = (code: string) => `${(Number(code.replace(' ', '')) + 1) % 1e8}`.padStart(8, '0')

t.test('16.6 the link logs in once, in any browser, and the code in the browser that asked for it', async (t) => {
  const user = await createVerified()
  const first = await ask(user.email)
  const [mail] = await inbox.of(user.email, 1)
  t.equal(mail!.subject, 'Log in to your account')
  t.match(mail!.text, /within 10 minutes\.\n\nhttps:\/\/id\.example\.com\/login\/mail\/confirm#token=[\w-]{43}\n\n/)
  t.match(mail!.html, first.code)
  const [stored] = await sql`select *, extract(epoch from expires_at - created_at) as seconds from login_links`
  t.ok(Math.abs(stored!.seconds - 600) < 5, 'for ten minutes')
  t.notMatch(JSON.stringify([...Object.values(stored!)].map(String)), new RegExp(`${first.token}|${first.code}`))

  const byLink = await confirm({ token: first.token })
  t.equal(byLink.statusCode, 200)
  t.match(byLink.json(), { tokenType: 'Bearer', user: { id: user.id, emailVerified: true } })
  t.strictSame(decodeJwt(byLink.json().token).amr, ['email'])
  t.match(byLink.headers['set-cookie'], /^usher_session=/)
  const again = await confirm({ token: first.token })
  t.strictSame([again.statusCode, again.json()], [400, invalidLink], 'once')

  const second = await ask(user.email, { count: 2 })
  const elsewhere = await confirm({ code: second.code })
  t.strictSame([elsewhere.statusCode, elsewhere.json()], [401, invalidCode], 'without the cookie of the browser')
  const byCode = await confirm({ code: second.code }, second)
  t.strictSame([byCode.statusCode, byCode.json().user.id], [200, user.id])
  const used = await confirm({ code: second.code }, second)
  t.strictSame([used.statusCode, used.json()], [401, invalidCode], 'once')
  t.equal(await statusOf(confirm({ token: second.token })), 400, 'the link of the same mail is void')
  t.strictSame(
    (await actionsOf(user.id)).filter((action) => action.startsWith('login')),
    ['login', 'login.mail-request', 'login', 'login.mail-request', 'login']
  )
})

t.test('16.6 clients without cookies send the id of the response with the code, in whatever form it is typed', async (t) => {
  const user = await createVerified()
  const response = await request(user.email, { payload: { cookie: false } })
  t.notOk(response.headers['set-cookie'])
  const { loginId } = response.json()
  const code = codeIn((await inbox.of(user.email, 1))[0]!.text)
  t.equal(await statusOf(confirm({ code, loginId: 'another' })), 401)
  t.equal(await statusOf(confirm({ code: ` ${code.replace(' ', '-')} `, loginId })), 200)
})

t.test('16.6 the code may be typed in Arabic-Indic, Persian and full-width digits, with spaces', async (t) => {
  const user = await createVerified()
  for (const [index, zero] of [0x660, 0x6f0, 0xff10].entries()) {
    const { cookie, code } = await ask(user.email, { count: index + 1 })
    const written = code.replaceAll(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)))
    const another = written.replace(/.$/u, (last) => String.fromCodePoint(zero + (last.codePointAt(0)! - zero + 1) % 10))
    t.equal(await statusOf(confirm({ code: another }, { cookie })), 401, another)
    t.equal(await statusOf(confirm({ code: ` ${written.replace(' ', '\u3000')} ` }, { cookie })), 200, written)
  }
})

t.test('16.6 programs that scan mails, and even run scripts, use nothing up', async (t) => {
  const user = await createVerified()
  const { token } = await ask(user.email)
  for (const method of ['GET', 'HEAD'] as const) {
    t.equal(await statusOf(inject(method, `/login/mail/confirm#token=${token}`)), 200)
  }
  t.equal(await statusOf(inject('GET', `/login/mail/confirm%23token=${token}`)), 302, 'an encoded # leads to the page')
  for (let checks = 0; checks < 3; checks++) {
    const response = await check(token)
    t.strictSame(
      [response.statusCode, response.json()], [200, { email: user.email, requestedHere: false, removes: false }],
      'the page asks which account it is, and does no more'
    )
  }
  t.equal(await sessionsOf(user.id), 1, 'that of before')
  t.equal(await statusOf(confirm({ token })), 200)
  t.equal(await statusOf(check(token)), 400)
})

t.test('16.6 the page learns whether the browser has asked for the mail', async (t) => {
  const user = await createVerified()
  const { token, cookie } = await ask(user.email)
  t.equal((await check(token, cookie)).json().requestedHere, true)
  const other = await request(newEmail())
  t.equal((await check(token, cookieIn(other, 'usher_login_mail'))).json().requestedHere, false)
})

t.test('16.6 every address gets the same response, and only accounts that may log in get a mail', async (t) => {
  const [user, disabled, changed] = [await createVerified(), await createVerified(), await createVerified()]
  await inject('PATCH', `/api/users/${disabled.id}`, { headers: admin.headers, payload: { disabled: true } })
  const stolen = newEmail()
  t.equal(await statusOf(
    inject('PATCH', `/api/users/${changed.id}`, { headers: changed.headers, payload: { email: stolen } })
  ), 200)
  const addresses = [user.email, user.email.toUpperCase(), disabled.email, stolen, newEmail(), 'nobody', 'x'.repeat(999)]
  const count = async () => (await sql`select 1 from login_links`).length
  const before = await count()
  const answers = []
  for (const email of addresses) answers.push(await request(email))
  await until('the requests are stored', async () => await count() === before + addresses.length)
  const shapeOf = ({ statusCode, headers, body }: LightMyRequestResponse) => [
    statusCode,
    { ...headers, date: '', 'set-cookie': `${headers['set-cookie']}`.replace(/=[\w-]{43};|Expires=[^;]*/g, '') },
    body,
  ]
  for (const answer of answers) t.strictSame(shapeOf(answer), shapeOf(answers[0]!))
  t.match(answers[0]!.json(), { message: 'If there is a user with this address, a mail to log in is on its way' })
  // Attempts at the codes take the same statements, and say the same.
  const attempts = async () => (await sql`select 1 from login_links where attempts > 0`).length
  const tried = await attempts()
  for (const answer of answers) {
    const response = await confirm({ code: '00000000' }, { cookie: cookieIn(answer, 'usher_login_mail') })
    t.strictSame([response.statusCode, response.json()], [401, invalidCode])
  }
  t.equal(await attempts(), tried + addresses.length)
  await inbox.of(user.email, 2)
  const mails = inbox.mails.filter(({ to }) => addresses.includes(to) && to !== stolen)
  t.strictSame(mails.map(({ to }) => to), [user.email, user.email], 'the spelling of the account')
  t.strictSame(inbox.mails.filter(({ to, subject }) => to === stolen && subject.startsWith('Log in')), [],
    'as long as the owner of the former address can undo the change (11.3)')
})

t.test('16.6 invalid requests get 400', async (t) => {
  const refused: [string, object, string][] = [
    ['', {}, 'email is required'], ['', { email: 1 }, 'email must be a string'],
    ['', { email: 'a@example.com', cookie: 'no' }, 'cookie must be a boolean'],
    ['/check', {}, 'token is required'], ['/check', { token: 'x' }, 'token is invalid or has expired'],
    ['/confirm', {}, 'either token or code is required'],
    ['/confirm', { token: 'x', code: '1' }, 'either token or code is required'],
    ['/confirm', { token: 'x' }, 'token is invalid or has expired'],
    ['/confirm', { code: 12345678 }, 'code must be a string'],
    ['/confirm', { code: '1\u0000' }, 'code must not contain control characters'],
  ]
  for (const [path, payload, sentence] of refused) {
    const response = await inject('POST', `/api/auth/login/mail${path}`, { payload })
    t.strictSame([response.statusCode, response.json()], [400, { errors: [sentence] }], JSON.stringify(payload))
  }
  for (const cookie of ['', 'x', 'a.b.c', `${'a'.repeat(43)}.`.repeat(9), 'ä'].map((value) => `usher_login_mail=${value}`)) {
    t.equal(await statusOf(confirm({ code: '12345678' }, { cookie })), 401, cookie)
  }
})

t.test('16.6 a code is void after five attempts, and the link is not', async (t) => {
  const user = await createVerified()
  const { code, token, cookie } = await ask(user.email)
  for (let attempts = 0; attempts < 5; attempts++) {
    t.equal(await statusOf(confirm({ code: wrongFor(code) }, { cookie })), 401)
  }
  const right = await confirm({ code }, { cookie })
  t.strictSame([right.statusCode, right.json()], [401, invalidCode])
  t.equal((await actionsOf(user.id)).filter((action) => action === 'login.failed').length, 5)
  t.equal(await statusOf(confirm({ token })), 200)
})

t.test('16.6 a hundred wrong codes at the same time: five are compared', async (t) => {
  const user = await createVerified()
  const { code, cookie } = await ask(user.email)
  const attempts = Array.from({ length: 100 }, () => statusOf(confirm({ code: wrongFor(code) }, { cookie })))
  t.strictSame(new Set(await Promise.all(attempts)), new Set([401]))
  t.strictSame([...await sql`select attempts from login_links where user_id = ${user.id}`], [{ attempts: 5 }])
  t.equal(await statusOf(confirm({ code }, { cookie })), 401, 'nor is the right one')
})

nightly('16.6 a hundred uses of a link or a code at the same time, on two nodes: one session', async (t) => {
  const other = await createUsher(t, { ...usher.options })
  const second = openLogins(other)
  for (const kind of ['token', 'code'] as const) {
    const user = await createVerified()
    const asked = await ask(user.email)
    const use = (index: number) => (index % 2 === 0 ? confirm : second.confirm)({ [kind]: asked[kind] }, asked)
    const statuses = await Promise.all(Array.from({ length: 100 }, (_, index) => statusOf(use(index))))
    t.equal(statuses.filter((status) => status === 200).length, 1, kind)
    t.equal(statuses.filter((status) => status === (kind === 'token' ? 400 : 401)).length, 99, kind)
    t.equal(await sessionsOf(user.id), 2, 'and that of before')
  }
})

t.test('16.6 two requests: either mail works, in the browser that sent both, until one is used', async (t) => {
  for (const used of ['first', 'second'] as const) {
    const user = await createVerified()
    const first = await ask(user.email)
    const second = await ask(user.email, { count: 2, cookie: first.cookie })
    t.match(second.cookie, first.cookie.split('=')[1]!, 'the cookie has both')
    const [chosen, other] = used === 'first' ? [first, second] : [second, first]
    t.equal(await statusOf(confirm({ code: chosen.code }, { cookie: second.cookie })), 200)
    t.equal(await statusOf(confirm({ code: other.code }, { cookie: second.cookie })), 401)
    t.equal(await statusOf(confirm({ token: other.token })), 400)
  }
})

t.test('16.6 whoever asks in a browser of their own gets no session when the owner logs in', async (t) => {
  const user = await createVerified()
  const mallory = await ask(user.email)
  const own = await ask(user.email, { count: 2 })
  t.equal(await statusOf(confirm({ token: mallory.token })), 200, 'the link works for the owner')
  t.equal(await statusOf(confirm({ code: mallory.code }, mallory)), 401)
  t.equal(await statusOf(confirm({ code: own.code }, own)), 401)
  t.equal(await sessionsOf(user.id), 2, 'that of before, and that of the owner')
})

t.test('16.6 a page of another origin can neither make a browser ask nor use its code', async (t) => {
  const user = await createVerified()
  const { code, cookie } = await ask(user.email)
  const headers = { origin: 'https://evil.example', cookie }
  const asked = await inject('POST', '/api/auth/login/mail', { payload: { email: user.email }, headers })
  t.notOk(asked.headers['set-cookie'])
  t.equal(await statusOf(inject('POST', '/api/auth/login/mail/confirm', { payload: { code }, headers })), 401)
  t.equal(await statusOf(confirm({ code }, { cookie })), 200)
})

nightly('16.6 whatever voids what was issued voids links and codes', async (t) => {
  const passkeys = withPasskeys(usher)
  const changes: Record<string, (user: LoggedIn) => Promise<unknown>> = {
    'another address': ({ id, headers }) =>
      inject('PATCH', `/api/users/${id}`, { headers, payload: { email: newEmail() } }),
    'another address by an admin': ({ id }) =>
      inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: { email: newEmail() } }),
    'another password': ({ headers, password: currentPassword }) =>
      inject('PUT', '/api/auth/password', { headers, payload: { currentPassword, password: randomUUID() } }),
    'a password by a link': async ({ email }) => {
      await inject('POST', '/api/auth/password-reset', { payload: { email } })
      const token = tokenIn(await mailTo(email, 'Set'))
      await inject('POST', '/api/auth/password-reset/confirm', { payload: { token, password: randomUUID() } })
    },
    'a disabled user': async ({ id }) => {
      for (const disabled of [true, false]) {
        await inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: { disabled } })
      }
    },
    'all sessions ended by an admin': ({ id }) =>
      inject('DELETE', `/api/users/${id}/sessions`, { headers: admin.headers }),
    'a passkey removed by an admin': async (user) => {
      const { id } = await passkeys.register(user, { origin: ORIGIN })
      await inject('DELETE', `/api/users/${user.id}/passkeys/${id}`, { headers: admin.headers })
    },
    'a deleted user': ({ id }) => inject('DELETE', `/api/users/${id}`, { headers: admin.headers }),
  }
  for (const [name, change] of Object.entries(changes)) {
    const user = await createVerified()
    const { code, token, cookie } = await ask(user.email)
    await change(user)
    t.equal(await statusOf(confirm({ code }, { cookie })), 401, name)
    t.equal(await statusOf(confirm({ token })), 400, name)
    t.strictSame([...await sql`select 1 from login_links where user_id = ${user.id}`], [], name)
  }
})

/** Gives a user an authenticator app. Returns a function that returns the next code. */
async function addApp (user: LoggedIn): Promise<() => string> {
  const { secret } = (await inject('POST', '/api/auth/totp', { headers: user.headers })).json()
  const step = Math.floor(Date.now() / 30_000)
  t.equal(await statusOf(inject(
    'POST', '/api/auth/totp/confirm', { headers: user.headers, payload: { code: codeOf(secret, step) } }
  )), 200)
  return () => codeOf(secret, step + 1)
}

t.test('16.6 a user with a second factor needs it as well, and the mail is used up by then', async (t) => {
  const user = await createVerified()
  const nextCode = await addApp(user)
  const before = await sessionsOf(user.id)
  const { code, cookie, token } = await ask(user.email)
  const response = await confirm({ code }, { cookie })
  t.equal(response.statusCode, 401)
  const { code: reason, challenge, methods } = response.json()
  t.strictSame([reason, methods], ['SECOND_FACTOR_REQUIRED', ['totp', 'recovery-code']])
  t.equal(await sessionsOf(user.id), before)
  t.equal(await statusOf(confirm({ token })), 400)
  const done = await inject('POST', '/api/auth/login/second-factor', { payload: { challenge, code: nextCode() } })
  t.equal(done.statusCode, 200)
  t.strictSame(decodeJwt(done.json().token).amr, ['email', 'otp', 'mfa'])
})

nightly('16.6 a login by mail that waits for the second factor is void after another address, password or repair', async (t) => {
  const changes: ((user: LoggedIn) => Promise<unknown>)[] = [
    ({ id }) => inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: { email: newEmail() } }),
    ({ id }) => sql`update users set email = ${newEmail()} where id = ${id}`,
    async ({ email }) => {
      await inject('POST', '/api/auth/password-reset', { payload: { email } })
      const payload = { token: tokenIn(await mailTo(email, 'Set')), password: randomUUID() }
      t.equal(await statusOf(inject('POST', '/api/auth/password-reset/confirm', { payload })), 204)
    },
    ({ id }) => inject('DELETE', `/api/users/${id}/sessions`, { headers: admin.headers }),
  ]
  for (const change of changes) {
    const user = await createVerified()
    const nextCode = await addApp(user)
    const { token } = await ask(user.email)
    const { challenge } = (await confirm({ token })).json()
    await change(user)
    const payload = { challenge, code: nextCode() }
    t.equal((await inject('POST', '/api/auth/login/second-factor', { payload })).json().code, 'INVALID_CHALLENGE')
  }
})

nightly('16.6 a repair of the account while a login by mail is about to succeed: no session', async (t) => {
  for (const hasApp of [false, true]) {
    const user = await createVerified()
    const nextCode = hasApp ? await addApp(user) : undefined
    const { token } = await ask(user.email)
    let finish = () => confirm({ token })
    if (nextCode) {
      const { challenge } = (await confirm({ token })).json()
      finish = () => inject('POST', '/api/auth/login/second-factor', { payload: { challenge, code: nextCode() } })
    }
    const response = await sql.begin(async (trx) => {
      // What every repair does (`repairAccount`).
      await trx`select 1 from users where id = ${user.id} for no key update`
      const finished = finish()
      await untilBlocked(sql, usher)
      for (const table of ['login_links', 'login_challenges', 'sessions']) {
        await trx`delete from ${trx(table)} where user_id = ${user.id}`
      }
      return { finished }
    }).then(({ finished }) => finished)
    t.equal(response.statusCode, hasApp ? 401 : 400)
    t.equal(await sessionsOf(user.id), 0)
  }
})

/** Prepares an account as somebody else would, for the owner of its address to use. */
async function prepare (t: Test): Promise<LoggedIn & { passkey: string, key: string }> {
  const user = await createUser()
  const { id } = await withPasskeys(usher).register(user, { origin: ORIGIN })
  const key = (await inject('POST', '/api/auth/keys', { headers: user.headers, payload: { name: 'Key' } })).json().key
  await sql`insert into identities (id, user_id, provider, issuer, subject)
    values (gen_random_uuid(), ${user.id}, 'other', 'https://other.example', ${user.id})`
  await addApp(user)
  await sql`delete from recovery_codes where user_id = ${user.id} and hash <> (
    select min(hash) from recovery_codes where user_id = ${user.id})`
  t.equal((await sql`select 1 from recovery_codes where user_id = ${user.id}`).length, 1)
  return { ...await usher.app.usher.sessions.start(user.id, { amr: ['mfa'] }), ...user, passkey: id, key }
}

t.test('16.6 an account that somebody else has prepared: what they have set up is gone', async (t) => {
  const user = await prepare(t)
  // A link that undoes a change, one that sets a password, a change of the address that waits, and a waiting login.
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const undo = await sql`select 1 from undo_links where user_id = ${user.id}`
  t.ok(undo.length > 0, 'links that undo what was added')
  await sql`
    insert into verification_links (hash, user_id, email, session_id, expires_at)
    select sha256('x'), ${user.id}, 'thief@example.com', min(id::text)::uuid, now() + interval '1 day'
    from sessions where user_id = ${user.id}`
  const waiting = await inject('POST', '/api/auth/login', { payload: { email: user.email, password: user.password } })
  t.equal(waiting.json().code, 'SECOND_FACTOR_REQUIRED')
  await mailTo(user.email, 'Set')

  const { token } = await ask(user.email)
  t.equal((await check(token)).json().removes, true, 'the page says so before')
  const loggedIn = await confirm({ token })
  t.equal(loggedIn.statusCode, 200)
  t.equal(loggedIn.json().user.emailVerified, true)

  const tables = [
    'passkeys', 'totp', 'recovery_codes', 'api_keys', 'identities', 'undo_links', 'password_links', 'verification_links',
    'login_challenges', 'login_links',
  ]
  for (const table of tables) {
    t.strictSame([...await sql`select 1 from ${sql(table)} where user_id = ${user.id}`], [], table)
  }
  t.equal(await sessionsOf(user.id), 1, 'only that of the owner')
  t.equal(await statusOf(inject('GET', '/api/protected', { headers: user.headers })), 401)
  t.equal(await statusOf(inject('GET', '/api/protected', { headers: bearer(user.key) })), 401)
  t.equal(await statusOf(inject('GET', '/api/protected', { headers: bearer(loggedIn.json().token) })), 200)
  t.equal(
    await statusOf(inject('POST', '/api/auth/login', { payload: { email: user.email, password: user.password } })), 401
  )
  t.strictSame(
    (await actionsOf(user.id)).slice(-8),
    [
      'user.email-verify', 'password.remove', 'passkey.remove', 'totp.remove', 'identity.remove', 'api-key.remove', 'login',
      'login.failed',
    ]
  )
  await mailTo(user.email, 'The earlier password')

  // From now on, nobody loses anything by logging in.
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const reset = tokenIn(await mailTo(user.email, 'Set', 2))
  const password = randomUUID()
  await inject('POST', '/api/auth/password-reset/confirm', { payload: { token: reset, password } })
  const { token: next } = await ask(user.email, { count: 2 })
  t.equal((await check(next)).json().removes, false)
  t.equal(await statusOf(confirm({ token: next })), 200)
  t.equal(await statusOf(inject('POST', '/api/auth/login', { payload: { email: user.email, password } })), 200)
})

t.test('16.6 a thief who has changed the address cannot void the link that undoes it', async (t) => {
  const user = await createVerified()
  const thief = newEmail()
  await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email: thief } })
  const undo = tokenIn((await inbox.of(user.email, 1))[0]!)
  await request(thief)
  await inject('POST', `/api/users/${user.id}/email-verification`, { headers: user.headers })
  const verification = tokenIn((await inbox.of(thief, 1))[0]!)
  await inject('POST', '/api/auth/email-verification/confirm', { headers: user.headers, payload: { token: verification } })
  const { token } = await ask(thief)
  t.equal((await check(token)).json().removes, false)
  t.equal(await statusOf(confirm({ token })), 200)
  t.equal(await statusOf(inject('POST', '/api/auth/undo', { payload: { token: undo } })), 204)
  t.equal((await inject('GET', `/api/users/${user.id}`, { headers: admin.headers })).json().email, user.email)
  t.equal(await sessionsOf(user.id), 0)
})

t.test('16.6 the hook beforeLogin may reject, and the claims are those of a verified user', async (t) => {
  const own = await createUsher(t, {
    mailer: inbox.mailer,
    loginMail: true,
    claims: ({ emailVerified }) => ({ verified: emailVerified }),
    hooks: {
      beforeLogin (user) {
        if (user.name === 'Banned') throw Object.assign(new Error('You are banned'), { statusCode: 403 })
      },
    },
  })
  const logins = openLogins(own)
  const user = await own.createUser()
  const { token } = await logins.ask(user.email)
  const response = await logins.confirm({ token })
  t.strictSame(decodeJwt(response.json().token).verified, true)
  const banned = await own.createUser()
  const asked = await logins.ask(banned.email)
  await own.inject('PATCH', `/api/users/${banned.id}`, { headers: banned.headers, payload: { name: 'Banned' } })
  t.equal((await logins.confirm({ code: asked.code }, asked)).statusCode, 403)
  await own.inject('PATCH', `/api/users/${banned.id}`, { headers: banned.headers, payload: { name: 'Ada' } })
  t.equal((await logins.confirm({ code: asked.code }, asked)).statusCode, 200, 'a rejected login uses nothing up')
})

t.test('16.6 while it is off, the paths do not exist, and no code of a mail steps up', async (t) => {
  const own = await sharedUsher({ mailer: sharedInbox.mailer })
  const user = await own.createUser()
  for (const path of ['login/mail', 'login/mail/check', 'login/mail/confirm', 'step-up/mail']) {
    const response = await own.inject('POST', `/api/auth/${path}`, { payload: { email: user.email }, headers: user.headers })
    t.equal(response.statusCode, 404, path)
  }
  for (const path of ['/login/mail', '/login/mail/confirm']) t.equal(await statusOf(own.inject('GET', path)), 404, path)
  const payload = { mail: { id: 'x', code: '12345678' } }
  t.equal(await statusOf(own.inject('POST', '/api/auth/step-up', { payload, headers: user.headers })), 403)
})

const submit = (path: string, fields: Record<string, string>, headers: object = { 'sec-fetch-site': 'same-origin' }) =>
  inject('POST', path, {
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    payload: `${new URLSearchParams(fields)}`,
  })
const loginIdIn = (body: string): string => /name="loginId" value="([\w-]+)"/.exec(body)![1]!

t.test('16.6 the forms work without JavaScript, say the same for every address, and keep returnTo', async (t) => {
  const user = await createVerified()
  const pages = []
  for (const email of [newEmail(), 'no address', user.email]) {
    const { statusCode, headers, body } = await submit('/login/mail?returnTo=/a', { email })
    t.strictSame([statusCode, headers['cache-control'], headers['referrer-policy']], [200, 'no-store', 'same-origin'])
    t.match(body, /data-step="mail" hidden>[^]*data-step="mail-code">/)
    t.match(body, 'action="../login/mail/code?returnTo=%2Fa"')
    t.match(body, email, 'it says where the mail was sent')
    pages.push({ email, body })
  }
  const shapes = pages.map(({ email, body }) => body.replaceAll(email, '').replaceAll(/ value="[^"]*"/g, ''))
  for (const shape of shapes) t.equal(shape, shapes[0])
  const loginId = loginIdIn(pages.at(-1)!.body)
  const code = codeIn((await mailTo(user.email, 'Log in')).text)

  const wrong = await submit('/login/mail/code?returnTo=/a', { loginId, code: '<b>' })
  t.equal(wrong.statusCode, 401)
  t.match(wrong.body, /id="mail-code-alert">This code is wrong, was used or has expired\./)
  t.equal(loginIdIn(wrong.body), loginId)
  t.match(wrong.body, 'action="../../login/mail/code?returnTo=%2Fa"')
  t.notMatch(wrong.body, '<b>')
  const evil = await submit('/login/mail/code', { loginId: '"><script>', code })
  t.strictSame([evil.statusCode, evil.body.includes('"><script>')], [401, false])
  for (const fields of [{ code }, { loginId: '', code }, { loginId }] as Record<string, string>[]) {
    const { statusCode, body } = await submit('/login/mail/code', fields)
    t.ok([400, 401].includes(statusCode))
    t.match(body, '<form')
  }
  for (const headers of [{ origin: 'https://evil.example' }, {}]) {
    t.equal(await statusOf(submit('/login/mail', { email: user.email }, headers)), 403)
    t.equal(await statusOf(submit('/login/mail/code', { loginId, code }, headers)), 403)
  }
  const done = await submit('/login/mail/code?returnTo=/a', { loginId, code })
  t.strictSame([done.statusCode, done.headers.location, done.body], [303, '/a', ''])
  const cookie = cookieIn(done, 'usher_session')
  t.equal(await statusOf(inject('POST', '/api/auth/refresh', { headers: { cookie } })), 200)
})

t.test('16.6 without JavaScript, the login asks for the second factor after the code', async (t) => {
  const user = await createVerified()
  const nextCode = await addApp(user)
  const loginId = loginIdIn((await submit('/login/mail', { email: user.email })).body)
  const code = codeIn((await mailTo(user.email, 'Log in')).text)
  const asked = await submit('/login/mail/code', { loginId, code })
  t.equal(asked.statusCode, 401)
  t.match(asked.body, /data-step="mail-code" hidden>[^]*data-step="second">/)
  t.match(asked.body, 'action="../../login/second-factor"')
  const challenge = /name="challenge" value="([\w.-]+)"/.exec(asked.body)![1]!
  const done = await submit('/login/second-factor', { challenge, code: nextCode() })
  t.strictSame([done.statusCode, done.headers.location], [303, '../account'])
})
