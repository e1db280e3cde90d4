import { createHash, randomUUID } from 'node:crypto'
import type { LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { uniqueSchema } from '../helpers/database.ts'
import { createUsher } from '../helpers/app.ts'
import { createMailer, startMailServer, tokenIn } from '../helpers/mail.ts'
import { openSql, untilBlocked } from '../helpers/sql.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { until } from '../helpers/until.ts'
import { createSmtpMailer } from '../../node/mail/smtp.ts'

const accepted = { message: 'A mail to this address says how to go on' }
const required = { errors: ['password is required'], code: 'PASSWORD_REQUIRED' }
const invalid = { errors: ['token is invalid or has expired'] }
const taken = { error: 'This email address is already taken', code: 'EMAIL_TAKEN' }
const LINK = 'Confirm your account'
const TAKEN = 'You already have an account'

const inbox = createMailer()
const lines: string[] = []
const logger = { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } }
const service = await createUsher(
  t, { mailer: inbox.mailer, publicUrl: 'https://api.example.com/base', signUp: true }, { logger }
)
const { options, inject, admin, createUser } = service
const sql = openSql(t, service)

const person = (rest: object = {}) =>
  ({ name: 'Ada Lovelace', email: `${randomUUID()}@example.com`, password: `pass ${randomUUID()}`, ...rest })
const signUp = (payload: object, rest: object = {}) => inject('POST', '/api/auth/sign-up', { payload, ...rest })
const confirm = ({ token, cookie }: Link, payload: object = {}) =>
  inject('POST', '/api/auth/sign-up/confirm', { payload: { token, ...payload }, headers: cookie ? { cookie } : {} })
const check = ({ token, cookie }: Link, payload: object = {}) =>
  inject('POST', '/api/auth/sign-up/check', { payload: { token, ...payload }, headers: cookie ? { cookie } : {} })
const newPassword = () => `pass ${randomUUID()}`
const tries = async ({ email, password }: { email: string, password: string }) =>
  (await inject('POST', '/api/auth/login', { payload: { email, password } })).statusCode
const usersOf = async (email: string) =>
  [...await sql`select id, name, email, role, email_verified from users where lower(email) = lower(${email})`]
const pendingOf = async (email: string) =>
  (await sql`select 1 from sign_ups where lower(email) = lower(${email}) and expires_at > now()`).length

/** The token of a link, and the cookie of the browser in which it is opened. */
interface Link { token: string, cookie?: string | undefined }

const cookieIn = (response: LightMyRequestResponse): string =>
  /^usher_sign_up=[^;]+/.exec(`${response.headers['set-cookie']}`)![0]

/**
 * Signs up and returns the token of the link, with the cookie of the browser. `count` is the number of mails to the
 * address so far, this one included.
 */
async function ask (payload: { email: string }, count = 1): Promise<Required<Link>> {
  const response = await signUp(payload)
  t.same([response.statusCode, response.json()], [202, accepted])
  return { token: await inbox.token(payload.email, count), cookie: cookieIn(response) }
}

t.test('11.2 the link of a sign-up creates the user, once, with a verified address', async (t) => {
  const ada = person({ role: 'admin', id: randomUUID(), emailVerified: false })
  const link = await ask(ada)
  const [mail] = await inbox.of(ada.email, 1)
  t.equal(mail!.subject, LINK)
  t.match(mail!.text, /within 1 day\.\n\nhttps:\/\/api\.example\.com\/base\/sign-up\/confirm#token=[\w-]{43}\n\n/)
  t.notMatch(mail!.text, ada.name, 'nothing that somebody has chosen is mailed')
  t.same(await usersOf(ada.email), [], 'nothing is stored before')
  t.equal(await tries(ada), 401)
  const [pending] =
    await sql`select *, encode(hash, 'hex') as hex, extract(epoch from expires_at - created_at)::int as seconds from sign_ups where email = ${ada.email}`
  const hex = createHash('sha256').update(link.token).digest('hex')
  t.match(pending, { hex, seconds: 86400, password_hash: /^\$argon2id\$/ }, 'stored hashed')

  const response = await confirm(link)
  t.equal(response.statusCode, 201)
  const user = response.json()
  t.match(user, { name: ada.name, email: ada.email, role: 'user', emailVerified: true, disabled: false })
  t.equal(response.headers.location, `/base/api/users/${user.id}`)
  t.match(response.headers['set-cookie'], /^usher_sign_up=; Max-Age=0; Path=\/base\/api\/auth;/, 'no session is opened')
  t.same((await inject('GET', `/api/users/${user.id}`)).json(), user)
  t.same(
    [...await sql`select action, actor_id from audit where user_id = ${user.id}`],
    [{ action: 'user.sign-up', actor_id: user.id }]
  )
  t.equal(await tries(ada), 200)
  const again = await confirm(link)
  t.same([again.statusCode, again.json()], [400, invalid])
})

t.test('11.2 a taken, a pending and a free address get the same response, in any case, and only mails differ', async (t) => {
  const user = await createUser()
  const pending = person()
  await ask(pending)
  const answers = [
    await signUp(person()), await signUp(person({ email: user.email })),
    await signUp(person({ email: ` ${user.email.toUpperCase()} ` })), await signUp(pending),
  ]
  const shapeOf = ({ statusCode, headers, body }: LightMyRequestResponse) => [
    statusCode,
    { ...headers, date: '', 'set-cookie': `${headers['set-cookie']}`.replace(/=[\w-]{43};|Expires=[^;]*/g, '') },
    body,
  ]
  for (const answer of answers) t.same(shapeOf(answer), [202, shapeOf(answers[0]!)[1], JSON.stringify(accepted)])
  t.equal(new Set(answers.map(cookieIn)).size, 4, 'each has a secret of its own')
  for (const email of [user.email, user.email.toUpperCase()]) {
    const [mail] = await inbox.of(email, 1)
    t.equal(mail!.subject, TAKEN)
    t.match(mail!.text, 'https://api.example.com/base/login\n')
    t.match(mail!.text, 'https://api.example.com/base/forgot-password\n')
    t.notMatch(mail!.text, 'token')
  }
  t.equal(await pendingOf(user.email), 0)
  t.equal((await inbox.of(pending.email, 2))[1]!.subject, LINK)
  t.equal(await tries(user), 200, 'and the account stays as it is')
})

t.test('11.2 invalid input gets 400, whatever the address', async (t) => {
  const { email } = await createUser()
  const refused: [object, string[]][] = [
    [{}, ['name is required', 'email is required']],
    [{ name: 1, email: 'x', password: 'short' }, [
      'name must be a string', 'email must be an email address', 'password must be at least 8 characters',
    ]],
    [{ name: 'Ada', email, password: 'password1' }, ['password is too common']],
    [{ name: 'Ada Lovelace', email, password: 'ada lovelace' }, ['password must not be the name or the email address']],
    [{ name: 'Ada', email, password: email }, ['password must not be the name or the email address']],
  ]
  for (const [payload, errors] of refused) {
    for (const address of [email, `${randomUUID()}@example.com`]) {
      const response = await signUp('email' in payload && payload.email === email
        ? {
            ...payload, email: address, ...'password' in payload && payload.password === email && { password: address },
          }
        : payload)
      t.same([response.statusCode, response.json()], [400, { errors }])
    }
  }
  t.same((await inject('POST', '/api/auth/sign-up/confirm')).json(), { errors: ['token is required'] })
  t.same((await inject('POST', '/api/auth/sign-up/confirm', { payload: { token: 1 } })).json(), {
    errors: ['token must be a string'],
  })
  for (const token of ['', 'x', 'x'.repeat(43), 'x'.repeat(1024)]) {
    t.same((await confirm({ token }, { password: newPassword() })).json(), invalid)
  }
  t.equal(inbox.mails.filter(({ to }) => to === email).length, 0)
})

t.test('11.2 no name and no address adds a header or a recipient to a mail', async (t) => {
  const server = await startMailServer(t)
  const { mailer, close } = createSmtpMailer(server.url, 'Usher <usher@example.com>')
  t.teardown(close)
  const { inject } = await createUsher(
    t, { ...options, schema: uniqueSchema(t.name), uploadsDir: temporaryFolder(), mailer }
  )
  const send = async (payload: object) =>
    (await inject('POST', '/api/auth/sign-up', { payload: person(payload) })).statusCode
  const addresses = [
    'eve@example.com\r\nBcc: all@example.com', 'eve@example.com\nBcc: all@example.com', 'eve@example.com\u0000',
    'eve@example.com, all@example.com', 'eve@example.com;all@example.com', 'Eve <all@example.com>', '"eve"@example.com',
    '"all@example.com "@example.com', 'eve@exam\u2028ple.com', 'éve@example.com', 'eve@exämple.com,b@a.com',
    'eve\u212a@example.com', '<all@example.com>', 'eve@example.com(all)', '@all@example.com', 'eve@[127.0.0.1]',
  ]
  for (const email of addresses) t.equal(await send({ email }), 400, encodeURI(email))
  for (const name of ['Eve\r\nBcc: all@example.com', 'Eve\u0000', 'Eve\u007f']) {
    t.equal(await send({ name }), 400, encodeURI(name))
  }
  const odd = ["o'neil+tag@example.com", '-x=?utf-8?q?a?=@example.com', '{all}|$%&*@example.com']
  for (const email of odd) {
    t.equal(await send({ email, name: '"Eve" <all@example.com>, =?utf-8?q?x?= https://evil.example' }), 202)
    t.same((await server.of(email, 1)).map(({ subject }) => subject), [LINK])
  }
  t.equal(await send({ email: ' \r\ntrimmed@example.com\r\n' }), 202)
  await server.of('trimmed@example.com', 1)
  t.same(
    server.mails.map(({ to }) => to).sort(), [...odd, 'trimmed@example.com'].sort(),
    'one recipient each, and nobody else'
  )
  for (const message of server.raw) {
    t.notMatch(
      message.replaceAll('{all}|$%&*@example.com', ''), /^(b?cc|reply-to):|all@example\.com|evil\.example|"Eve"/mi
    )
  }
})

t.test('11.2 the link never follows the Host header', async (t) => {
  const ada = person()
  const headers = {
    host: 'evil.example',
    'x-forwarded-host': 'evil.example',
    forwarded: 'host=evil.example',
    origin: 'https://evil.example',
  }
  t.equal((await signUp(ada, { headers })).statusCode, 202)
  t.match((await inbox.of(ada.email, 1))[0]!.text, '\nhttps://api.example.com/base/sign-up/confirm#token=')
  t.notMatch(JSON.stringify(inbox.mails), 'evil')
})

t.test('11.2 several sign-ups for an address each have their own password; confirming one deletes the others', async (t) => {
  const [one, two] = [person(), person({ name: 'Another' })]
  two.email = one.email.toUpperCase()
  const links = [await ask(one), await ask(two)]
  t.equal(await pendingOf(one.email), 2)
  t.match((await confirm(links[1]!)).json(), { name: 'Another', email: two.email })
  t.same([await tries(one), await tries(two)], [401, 200])
  t.same((await confirm(links[0]!)).json(), invalid)
  t.equal(await pendingOf(one.email), 0)
})

// What a browser may send that has not sent the sign-up.
const others = async (): Promise<[what: string, cookie: string | undefined, payload?: object][]> => {
  const another = await ask(person())
  const { signUpId } = (await signUp({ ...person(), cookie: false })).json()
  return [
    ['no cookie', undefined],
    ['the cookie of another browser', another.cookie],
    ['a cookie of another kind', another.cookie.replace('usher_sign_up', 'usher_session')],
    ['an empty cookie', 'usher_sign_up='],
    ['a malformed cookie', `usher_sign_up=${'x'.repeat(5000)}`],
    ['the id of another client', undefined, { signUpId }],
    ['an empty id', undefined, { signUpId: '' }],
  ]
}

t.test('11.2 whoever opens the link elsewhere chooses the password: that of the sign-up never works', async (t) => {
  for (const [what, cookie, payload] of await others()) {
    const mallory = person()
    const { token } = await ask(mallory)
    const elsewhere = { token, cookie }
    const checked = await check(elsewhere, payload)
    t.same([checked.statusCode, checked.headers['password-required']], [200, 'true'], what)
    const refused = await confirm(elsewhere, payload)
    t.same([refused.statusCode, refused.json()], [400, required], what)
    t.same(await usersOf(mallory.email), [], 'and nothing is created')
    const password = newPassword()
    const confirmed = await confirm(elsewhere, { ...payload, password })
    t.same([confirmed.statusCode, confirmed.json().name], [201, mallory.name], 'the link still works')
    t.same([await tries(mallory), await tries({ ...mallory, password })], [401, 200], what)
  }
})

t.test('11.2 in the browser that has signed up, nothing is asked again', async (t) => {
  const ada = person()
  const response = await signUp(ada)
  const { 'set-cookie': set } = response.headers
  t.match(set, /^usher_sign_up=[\w-]{43}; Max-Age=(86400|86399); Path=\/base\/api\/auth; /)
  t.match(set, /; HttpOnly; Secure; SameSite=Lax$/, 'scripts and other sites cannot use the cookie')
  const link = { token: await inbox.token(ada.email), cookie: `other=1; ${cookieIn(response)}` }
  const checked = await check(link)
  t.same([checked.statusCode, checked.headers['password-required']], [200, undefined])
  const [stored] = await sql`select encode(binding_hash, 'hex') as hex from sign_ups where email = ${ada.email}`
  t.equal(stored!.hex, createHash('sha256').update(cookieIn(response).split('=')[1]!).digest('hex'), 'stored hashed')
  t.equal((await confirm(link)).statusCode, 201)
  t.equal(await tries(ada), 200)
})

t.test('11.2 a confirmation logs in if it asks for it, as the password of the account would', async (t) => {
  const [own, other, quiet] = [person(), person(), person()]
  const origin = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
  const logIn = async ({ token, cookie }: Link, payload: object, headers: object = {}) =>
    inject('POST', '/api/auth/sign-up/confirm', {
      payload: { token, ...payload }, headers: { ...cookie && { cookie }, ...headers },
    })
  const sessionIn = (response: Awaited<ReturnType<typeof logIn>>) =>
    response.cookies.find(({ name }) => name === 'usher_session')?.value
  const confirmed = await logIn(await ask(own), { logIn: true })
  const { id } = confirmed.json()
  const refreshed = await inject('POST', '/api/auth/refresh', { headers: { cookie: `usher_session=${sessionIn(confirmed)}` } })
  t.match(refreshed.json(), { user: { id, email: own.email } })
  const elsewhere = await logIn({ token: (await ask(other)).token }, { logIn: true, password: newPassword() })
  t.type(sessionIn(elsewhere), 'string', 'also with a password that was just chosen')
  const actions = await sql`select action from audit where user_id = ${id} order by id`
  t.same(actions.map(({ action }) => action), ['user.sign-up', 'login'])
  const foreign = await logIn(await ask(quiet), { logIn: true, password: newPassword() }, origin)
  t.same([foreign.statusCode, sessionIn(foreign)], [201, undefined], 'a page of another site logs nobody in')
  for (const payload of [{}, { logIn: false }]) {
    const without = await logIn(await ask(person()), payload)
    t.same([without.statusCode, sessionIn(without)], [201, undefined])
  }
})

t.test('11.2 a hook that rejects the login of a new user leaves the user', async (t) => {
  const hooks = {
    beforeLogin ({ role }: { role: string }) {
      if (role === 'user') throw Object.assign(new Error('Not yet'), { statusCode: 403 })
    },
  }
  const strict = await createUsher(t, { mailer: inbox.mailer, signUp: true, hooks })
  const ada = person()
  const { signUpId } = (await strict.inject('POST', '/api/auth/sign-up', { payload: { ...ada, cookie: false } })).json()
  const payload = { token: await inbox.token(ada.email), signUpId, logIn: true }
  const confirmed = await strict.inject('POST', '/api/auth/sign-up/confirm', { payload })
  t.same([confirmed.statusCode, confirmed.cookies], [201, []])
  t.equal((await strict.inject('POST', '/api/auth/login', { payload: ada })).statusCode, 403)
})

t.test('11.2 whoever receives the mail may replace the name and the password, in any browser', async (t) => {
  const [ada, mallory] = [person(), person({ name: 'Mallory' })]
  const own = await ask(ada)
  const password = newPassword()
  t.equal((await confirm(own, { name: ' Countess ', password })).json().name, 'Countess')
  t.same([await tries(ada), await tries({ ...ada, password })], [401, 200])
  const { token } = await ask(mallory)
  const ignored = { role: 'admin', email: 'x@example.com', id: randomUUID() }
  const response = await confirm({ token }, { name: 'Victim', password, ...ignored })
  t.match(response.json(), { name: 'Victim', email: mallory.email, role: 'user' })
  const stored = [...await sql`select * from users where email = ${mallory.email}`, ...await sql`select * from audit`]
  t.notMatch(JSON.stringify(stored), 'Mallory')
})

t.test('11.2 a client without cookies gets an id instead, if it asks for it', async (t) => {
  const ada = person()
  const response = await signUp({ ...ada, cookie: false })
  t.equal(response.headers['set-cookie'], undefined)
  const { signUpId, ...rest } = response.json()
  t.same([rest, signUpId.length], [accepted, 43])
  const token = await inbox.token(ada.email)
  t.equal((await check({ token }, { signUpId })).headers['password-required'], undefined)
  const confirmed = await confirm({ token }, { signUpId })
  t.same([confirmed.statusCode, confirmed.headers['set-cookie']], [201, undefined])
  t.equal(await tries(ada), 200)
  const asked = await signUp({ ...person(), cookie: true })
  t.same([asked.json(), typeof cookieIn(asked)], [accepted, 'string'], 'others get no id, which a script could read')
})

t.test('11.2 a sign-up without a password gets one when it is confirmed, also in its own browser', async (t) => {
  const { password: _, ...ada } = person()
  const link = await ask(ada)
  t.equal((await check(link)).headers['password-required'], 'true')
  t.same((await confirm(link)).json(), required)
  const password = newPassword()
  t.equal((await confirm(link, { password })).statusCode, 201)
  t.equal(await tries({ ...ada, password }), 200)
})

t.test('11.2 the password of a confirmation follows the rules, and the link works until it does', async (t) => {
  const ada = person()
  const { token } = await ask(ada)
  const refused: [object, string[]][] = [
    [{ password: 'short' }, ['password must be at least 8 characters']],
    [{ password: 'password1' }, ['password is too common']],
    [{ password: 'x'.repeat(257) }, ['password must be at most 256 characters']],
    [{ password: 'ADA lovelace' }, ['password must not be the name or the email address']],
    [{ password: 'the countess', name: 'The Countess' }, ['password must not be the name or the email address']],
    [{ password: ada.email.toUpperCase() }, ['password must not be the name or the email address']],
    [{ password: ada.email.split('@')[0] }, ['password must not be the name or the email address']],
    [
      { password: 12345678, name: ' ', signUpId: 1 },
      ['signUpId must be a string', 'name must not be blank', 'password must be a string'],
    ],
    [{ password: null }, ['password must be a string']],
    [{ password: 'a\u0000 of no use' }, ['password must not contain control characters']],
    [{ password: newPassword(), signUpId: 'x'.repeat(1025) }, ['signUpId must be at most 1024 characters']],
  ]
  for (const [payload, errors] of refused) {
    const response = await confirm({ token }, payload)
    t.same([response.statusCode, response.json()], [400, { errors }], JSON.stringify(payload))
  }
  t.same((await signUp({ ...person(), cookie: 'no' })).json(), { errors: ['cookie must be a boolean'] })
  t.equal((await confirm({ token }, { password: newPassword() })).statusCode, 201)
})

t.test('11.2 of two browsers that sign up with one address, each keeps its password by its own link only', async (t) => {
  const [one, two] = [person(), person()]
  two.email = one.email
  const [first, second] = [await ask(one), await ask(two, 2)]
  for (const mixed of [{ ...first, cookie: second.cookie }, { ...second, cookie: first.cookie }]) {
    t.same((await confirm(mixed)).json(), required)
  }
  const both = await confirm({ ...first, cookie: `${first.cookie}; ${second.cookie}` })
  t.same(both.json(), required, 'a sibling domain may have set one of two cookies')
  t.equal((await confirm(second)).statusCode, 201)
  t.same([await tries(one), await tries(two)], [401, 200])
})

t.test('11.2 after a second sign-up in one browser, perhaps of somebody else, the first needs a password', async (t) => {
  const [mallory, ada] = [person(), person()]
  ada.email = mallory.email
  const first = await ask(mallory)
  const response = await signUp(ada, { headers: { cookie: first.cookie } })
  const cookie = cookieIn(response)
  t.not(cookie, first.cookie)
  await inbox.of(ada.email, 2)
  t.same((await confirm({ token: first.token, cookie })).json(), required)
})

t.test('11.2 a page of another origin can neither make a browser keep a password nor use the cookie', async (t) => {
  const mallory = person()
  const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  const response = await signUp(mallory, { headers: foreign })
  t.same([response.statusCode, response.json(), response.headers['set-cookie']], [202, accepted, undefined])
  const ada = person()
  const { token, cookie } = await ask(ada)
  const from = (headers: object) =>
    inject('POST', '/api/auth/sign-up/confirm', { payload: { token }, headers: { ...headers, cookie } })
  for (const site of ['cross-site', 'same-site', 'none']) {
    t.same((await from({ origin: 'https://evil.example', 'sec-fetch-site': site })).json(), required)
  }
  // A proxy may have ended TLS, so that the origin is not the one of the request.
  t.equal((await from({ origin: 'https://elsewhere.example', 'sec-fetch-site': 'same-origin' })).statusCode, 201)
  const bea = person()
  const link = await ask(bea)
  const headers = { origin: 'https://api.example.com', 'sec-fetch-site': 'same-site', cookie: link.cookie }
  const confirmed = await inject('POST', '/api/auth/sign-up/confirm', { payload: { token: link.token }, headers })
  t.equal(confirmed.statusCode, 201)
})

t.test('11.2 links that do not work cost no hash, however many passwords are sent with them', async (t) => {
  const hashes = async () =>
    (await service.app.usher.metrics()).find(({ name }) => name === 'usher_password_hashes_total')!.samples
  const ada = person()
  const link = await ask(ada)
  await sql`update sign_ups set expires_at = now() where email = ${ada.email}`
  const before = await hashes()
  for (const token of [link.token, 'x'.repeat(43), randomUUID()]) {
    const send = () => confirm({ ...link, token }, { password: newPassword() })
    const responses = await Promise.all(Array.from({ length: 20 }, send))
    for (const response of responses) t.same([response.statusCode, response.json()], [400, invalid])
  }
  t.same(await hashes(), before)
})

t.test('11.2 of concurrent confirmations with different passwords, one creates the account', async (t) => {
  const ada = person()
  const link = await ask(ada)
  const passwords = Array.from({ length: 10 }, newPassword)
  const confirmed = await Promise.all(passwords.map(async (password, index) =>
    ({ password, status: (await confirm({ token: link.token }, { password, name: `Ada ${index}` })).statusCode })))
  const [winner, ...none] = confirmed.filter(({ status }) => status === 201)
  t.equal(none.length, 0)
  t.same([...new Set(confirmed.map(({ status }) => status))].sort(), [201, 400])
  t.equal(await tries({ email: ada.email, password: winner!.password }), 200)
  t.equal((await usersOf(ada.email))[0]!.name, `Ada ${confirmed.indexOf(winner!)}`)
})

t.test('11.2 a link that expires while a password is hashed creates no account', async (t) => {
  const ada = person()
  const { token } = await ask(ada)
  const { confirmed } = await sql.begin(async (trx) => {
    await trx`update sign_ups set expires_at = now() where email = ${ada.email}`
    const confirmed = confirm({ token }, { password: newPassword() })
    await untilBlocked(sql, service)
    return { confirmed }
  })
  t.same((await confirmed).json(), invalid)
  t.same(await usersOf(ada.email), [])
})

t.test('11.2 ten sign-ups for an address may be pending: their links work, further ones change nothing', async (t) => {
  const { email } = person()
  const spelled = (index: number) => index % 2 === 0 ? email : email.toUpperCase()
  for (let index = 0; index < 12; index++) t.equal((await signUp(person({ email: spelled(index) }))).statusCode, 202)
  const ada = person()
  await ask(ada)
  t.equal(await pendingOf(email), 10)
  const mails = inbox.mails.filter(({ to }) => to.toLowerCase() === email)
  t.equal(mails.length, 10)
  t.match(lines.join(''), 'A sign-up is not stored because too many for its address are pending')
  t.notMatch(lines.join(''), email)
  const victim = { token: tokenIn(mails[9]!) }
  const password = newPassword()
  t.equal((await confirm(victim, { password })).statusCode, 201, 'so a flood keeps nobody from having an account')
  t.equal(await tries({ email: mails[9]!.to, password }), 200)
})

t.test('11.2 an expired sign-up is rejected, also if it expires while it is being confirmed', async (t) => {
  const [late, racing] = [person(), person()]
  const links = [await ask(late), await ask(racing)]
  await sql`update sign_ups set expires_at = now() where email = ${late.email}`
  t.same((await confirm(links[0]!)).json(), invalid)
  const { confirmed } = await sql.begin(async (trx) => {
    await trx`update sign_ups set expires_at = now() where email = ${racing.email}`
    const confirmed = confirm(links[1]!)
    await untilBlocked(sql, service)
    return { confirmed }
  })
  t.same((await confirmed).json(), invalid)
  for (const { email } of [late, racing]) t.same(await usersOf(email), [])
})

t.test('11.2 an address that was taken meanwhile gets 409, and the sign-up is deleted', async (t) => {
  for (const change of [(email: string) => email, (email: string) => email.toUpperCase()]) {
    const ada = person()
    const link = await ask(ada)
    await createUser({ email: change(ada.email) })
    const response = await confirm(link)
    t.same([response.statusCode, response.json()], [409, taken])
    t.same((await confirm(link)).json(), invalid)
    t.equal(await pendingOf(ada.email), 0)
  }
})

t.test('11.2 races: whoever confirms or creates, there is one user', async (t) => {
  const statusesOf = async (requests: Promise<{ statusCode: number }>[]) =>
    (await Promise.all(requests)).map(({ statusCode }) => statusCode).sort()
  const ada = person()
  const link = await ask(ada)
  const statuses = await statusesOf(Array.from({ length: 20 }, () => confirm(link)))
  t.same(statuses, [201, ...Array.from({ length: 19 }, () => 400)], 'the same link 20 times')
  t.equal((await usersOf(ada.email)).length, 1)
  for (let round = 0; round < 5; round++) {
    const [one, two] = [person(), person()]
    two.email = one.email.toUpperCase()
    const links = [await ask(one), await ask(two)]
    t.same(await statusesOf(links.map((link) => confirm(link))), [201, 400], 'two links for one address')
    t.equal((await usersOf(one.email)).length, 1)
  }
  for (let round = 0; round < 5; round++) {
    const ada = person()
    const link = await ask(ada)
    const create = () =>
      inject('POST', '/api/users', { headers: admin.headers, payload: { name: 'Ada', email: ada.email } })
    const [confirmed, created] = await Promise.all([confirm(link), create()])
    t.same([confirmed.statusCode, created.statusCode].sort(), [201, 409], 'a link, and an admin who creates the user')
    t.equal((await usersOf(ada.email)).length, 1)
    t.equal(await pendingOf(ada.email), 0)
  }
})

t.test('11.2 sign-ups are limited per network and per mailbox', async (t) => {
  const { inject } = await createUsher(t, { ...options, throttle: { signUp: { burst: 2, perMinute: 0.2 } } })
  const send = (remoteAddress: string, email = `${randomUUID()}@example.com`) =>
    inject('POST', '/api/auth/sign-up', { payload: person({ email }), remoteAddress })
  for (const status of [202, 202, 429]) t.equal((await send('192.0.2.1')).statusCode, status)
  const { email } = person()
  for (const [remoteAddress, status] of [['192.0.2.2', 202], ['192.0.2.3', 202], ['192.0.2.4', 429]] as const) {
    const response = await send(remoteAddress, status === 429 ? email.toUpperCase() : email)
    t.equal(response.statusCode, status)
    if (status === 429) t.match([response.headers['retry-after'], response.json().code], [/^\d+$/, 'TOO_MANY_REQUESTS'])
  }
  const ada = person().email
  const tagged = (tag: string) => ada.replace('@', `+${tag}@`)
  for (const [email, network, status] of [
    [tagged('1'), 5, 202], [tagged('2'), 6, 202], [tagged('3'), 7, 429], [ada, 8, 202],
  ] as const) {
    t.equal((await send(`192.0.2.${network}`, email)).statusCode, status, 'the address itself has a limit of its own')
  }
})

t.test('11.2 the number of pending sign-ups is limited, and expired ones are deleted', async (t) => {
  await sql`delete from sign_ups`
  await sql`insert into sign_ups (hash, name, email, binding_hash, expires_at)
    select sha256(n::text::bytea), 'Somebody', n || '@flood.example', '', now() + interval '1 day' from generate_series(1, 10000) as n`
  const ada = person()
  t.same((await signUp(ada)).json(), accepted)
  await until('it is logged', () =>
    lines.some((line) => line.includes('A sign-up is not stored because too many others are pending')))
  t.equal(await pendingOf(ada.email), 0)
  t.equal(inbox.mails.filter(({ to }) => to === ada.email).length, 0)
  await sql`update sign_ups set expires_at = now()`
  t.ok(await ask(ada), 'those that have expired do not count')
  await createUsher(t, options)
  await until(
    'they are deleted', async () => (await sql`select 1 from sign_ups where expires_at <= now()`).length === 0
  )
  t.equal(await pendingOf(ada.email), 1)
})

t.test('11.2 a failure after the response is logged, without the address and the password', async (t) => {
  await sql`alter table sign_ups rename to elsewhere`
  const ada = person()
  t.equal((await signUp(ada)).statusCode, 202)
  await until('it is logged', () => lines.some((line) => line.includes('A sign-up could not be stored')))
  await sql`alter table elsewhere rename to sign_ups`
  t.notMatch(lines.join(''), ada.email)
  t.notMatch(lines.join(''), ada.password)
})

t.test('11.2 sign-up is off by default: its paths do not exist', async (t) => {
  const { signUp, ...rest } = options
  const { inject } = await createUsher(t, rest)
  for (const path of ['/api/auth/sign-up', '/api/auth/sign-up/confirm']) {
    const response = await inject('POST', path, { payload: person() })
    t.same([response.statusCode, response.json()], [404, { error: 'Not found', code: 'NOT_FOUND' }])
    t.notOk(path in (await inject('GET', '/docs/json')).json().paths)
  }
  await t.rejects(createUsher(t, { ...options, mailer: undefined }), {
    message: 'usher: signUp needs the option mailer, because users are created by a link in a mail',
  })
})

t.test('11.2 under a prefix, links and Location have it', async (t) => {
  const { inject } = await createUsher(t, { ...options, prefix: '/accounts' })
  const ada = person()
  const cookie = cookieIn(await inject('POST', '/api/auth/sign-up', { payload: ada }))
  const token = await inbox.token(ada.email)
  t.match((await inbox.of(ada.email, 1))[0]!.text, '\nhttps://api.example.com/base/accounts/sign-up/confirm#token=')
  const response = await inject('POST', '/api/auth/sign-up/confirm', { payload: { token }, headers: { cookie } })
  t.equal(response.headers.location, `/base/accounts/api/users/${response.json().id}`)
})
