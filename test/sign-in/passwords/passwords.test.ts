import { createHash, randomUUID } from 'node:crypto'
import Fastify from 'fastify'
import t from 'tap'
import usher from '../../../app.ts'
import { createUsher, withUsers, type LoggedIn } from '../../helpers/app.ts'
import { uniqueSchema } from '../../helpers/database.ts'
import { createMailer, startMailServer, tokenIn } from '../../helpers/mail.ts'
import { openSql, untilBlocked } from '../../helpers/sql.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'
import { until } from '../../helpers/until.ts'
import { createSmtpMailer } from '../../../node/mail/smtp.ts'
import { slowNode } from '../../helpers/deadlines.ts'
import { nightly } from '../../helpers/nightly.ts'

const invalid = { errors: ['token is invalid or has expired'] }
const accepted = { message: 'If there is a user with this address, a link to set a password is on its way' }
const NEXT = 'a password of tomorrow'

const inbox = createMailer()
const service = await createUsher(
  t, { mailer: inbox.mailer, publicUrl: 'https://api.example.com/base', passwordTokenSeconds: 7200 }
)
const { options } = service

t.test('4.6 and 4.7 changing, setting and resetting a password', async (t) => {
  const { inject, admin, createUser, login } = service
  const sql = openSql(t, service)
  const works = async ({ headers }: LoggedIn) => (await inject('GET', '/api/protected', { headers })).statusCode
  const tries = async ({ email }: { email: string }, password: string) =>
    (await inject('POST', '/api/auth/login', { payload: { email, password } })).statusCode
  const change = (user: LoggedIn, payload: object) =>
    inject('PUT', '/api/auth/password', { headers: user.headers, payload })
  const request = (email: string) => inject('POST', '/api/auth/password-reset', { payload: { email } })
  const confirm = (token: string, password = NEXT) =>
    inject('POST', '/api/auth/password-reset/confirm', { payload: { token, password } })
  const invite = (id: string, { headers } = admin) => inject('POST', `/api/users/${id}/invitation`, { headers })
  const create = async (rest: object = {}) => (await inject(
    'POST',
    '/api/users',
    { headers: admin.headers, payload: { name: 'Somebody', email: `${randomUUID()}@example.com`, ...rest } }
  )).json()
  const actions = async (id: string) =>
    (await sql`select action from audit where user_id = ${id} order by id`).map(({ action }) => action)
  const sentTo = ({ email }: { email: string }) => inbox.mails.filter(({ to }) => to === email)

  async function ask (user: { email: string }): Promise<string> {
    const count = sentTo(user).length + 1
    t.equal((await request(user.email)).statusCode, 202)
    return inbox.token(user.email, count)
  }

  await t.test('4.6 a change returns 204 and ends every session except the current one', async (t) => {
    const user = await createUser()
    const [other, third] = [await login(user), await login(user)]
    const token = await ask(user)
    const response = await change(other, { currentPassword: user.password, password: NEXT })
    t.same([response.statusCode, response.body], [204, ''])
    t.same(await Promise.all([user, other, third].map(works)), [401, 200, 401])
    t.same([await tries(user, user.password), await tries(user, NEXT)], [401, 200])
    t.equal((await inject('POST', '/api/auth/refresh', { headers: { cookie: other.cookie } })).statusCode, 200)
    t.same((await confirm(token)).json(), invalid, 'nor does a link serve that was asked for before')
    t.ok((await actions(user.id)).includes('password.change'))
    const [, mail] = await inbox.of(user.email, 2)
    t.equal(mail!.subject, 'Your password was set')
  })

  await t.test('4.6 a wrong current password gets 403, and nothing changes', async (t) => {
    const user = await createUser()
    const other = await login(user)
    const response = await change(user, { currentPassword: 'wrong', password: NEXT })
    t.same(
      [response.statusCode, response.json()], [403, { error: 'The current password is wrong', code: 'WRONG_PASSWORD' }]
    )
    t.same([await works(user), await works(other), await tries(user, user.password)], [200, 200, 200])
  })

  await t.test('4.6 a user without a password cannot change it, but can set one with a mail link', async (t) => {
    const user = await createUser()
    await sql`update users set password_hash = null where id = ${user.id}`
    t.equal((await change(user, { currentPassword: user.password, password: NEXT })).json().code, 'WRONG_PASSWORD')
    t.equal((await confirm(await ask(user))).statusCode, 204)
    t.equal(await tries(user, NEXT), 200)
  })

  await t.test('4.6 a change is rejected without a token or body, for a deleted user, and if the password is the same, common or personal', async (t) => {
    const user = await createUser({ name: 'Ada Lovelace' })
    t.equal((await inject('PUT', '/api/auth/password', { payload: {} })).statusCode, 401)
    t.same((await change(user, {})).json(), { errors: ['currentPassword is required', 'password is required'] })
    const passwords = {
      [user.password]: 'password must differ from the current one',
      password1: 'password is too common',
      'ada lovelace': 'password must not be the name or the email address',
      [user.email.toUpperCase()]: 'password must not be the name or the email address',
      [user.email.split('@')[0]!]: 'password must not be the name or the email address',
    }
    for (const [password, sentence] of Object.entries(passwords)) {
      const response = await change(user, { currentPassword: user.password, password })
      t.same([response.statusCode, response.json()], [400, { errors: [sentence] }])
    }
    t.equal((await inject('POST', '/api/users', {
      headers: admin.headers, payload: { name: 'Charles Babbage', email: 'c@example.com', password: 'charles babbage' },
    })).statusCode, 400)
    // This simulates a user who is deleted after the token was verified and before the user is read.
    await sql`alter table sessions disable trigger session_ended`
    await sql`delete from users where id = ${user.id}`
    await sql`alter table sessions enable trigger session_ended`
    t.equal((await change(user, { currentPassword: user.password, password: NEXT })).statusCode, 401)
  })

  await t.test('4.7 a reset link sets the password once, and every session ends', async (t) => {
    const user = await createUser()
    const other = await login(user)
    const asked = await request(` ${user.email.toUpperCase()} `)
    t.same([asked.statusCode, asked.json()], [202, accepted])
    const [mail] = await inbox.of(user.email, 1)
    t.equal(mail!.subject, 'Set a new password')
    t.match(mail!.text, /within 2 hours\.\n\nhttps:\/\/api\.example\.com\/base\/set-password#token=[\w-]{43}\n\n/)
    const token = tokenIn(mail!)
    t.same(
      [...await sql`select encode(hash, 'hex') as hash from password_links where user_id = ${user.id}`],
      [{ hash: createHash('sha256').update(token).digest('hex') }],
      'stored hashed'
    )

    t.same((await confirm(token, 'password1')).json(), { errors: ['password is too common'] })
    t.same(
      (await confirm(token, user.email)).json(), { errors: ['password must not be the name or the email address'] }
    )
    const response = await confirm(token)
    t.same([response.statusCode, response.body], [204, ''], 'what is refused does not burn it')
    t.same([await works(user), await works(other), await tries(user, user.password), await tries(user, NEXT)], [
      401, 401, 401, 200,
    ])
    const replayed = await confirm(token, 'another password')
    t.same([replayed.statusCode, replayed.json()], [400, invalid])
    t.same(
      (await actions(user.id)).filter((action) => action.startsWith('password')),
      ['password.reset-request', 'password.reset']
    )
    t.equal((await inbox.of(user.email, 2))[1]!.subject, 'Your password was set')
  })

  await t.test('4.7 a token is rejected if it is expired, unknown or empty, or if its user was deleted or has a new address', async (t) => {
    const [late, gone, moved] = [await createUser(), await createUser(), await createUser()]
    const tokens = [await ask(late), await ask(gone), await ask(moved)]
    await sql`update password_links set expires_at = now() where user_id = ${late.id}`
    await inject('DELETE', `/api/users/${gone.id}`, { headers: admin.headers })
    await inject('PUT', `/api/users/${moved.id}`, {
      headers: admin.headers, payload: { name: 'Moved', email: `new-${moved.email}` },
    })
    for (const token of [...tokens, 'x'.repeat(43), '', `${tokens[0]}x`]) {
      const response = await confirm(token)
      t.same([response.statusCode, response.json()], [400, invalid])
    }
    t.same((await inject('POST', '/api/auth/password-reset/confirm', { payload: { token: 1 } })).json(), {
      errors: ['token must be a string', 'password is required'],
    })
    t.equal(await tries(late, late.password), 200)
    await sql`update users set email_changed_at = now() - interval '7 days' where id = ${moved.id}`
    const renamed = await ask({ email: `new-${moved.email}` })
    await inject('PUT', `/api/users/${moved.id}`, {
      headers: admin.headers, payload: { name: 'Renamed', email: `new-${moved.email}` },
    })
    t.equal((await confirm(renamed)).statusCode, 204, 'another name takes nothing away')
  })

  await t.test('4.7 a link is sent to the address that the user has when the token is created', async (t) => {
    const invited = await create()
    for (const [user, ask] of [[await createUser(), request], [invited, () => invite(invited.id)]] as const) {
      const moved = { email: `moved-${user.email}` }
      const { asked } = await sql.begin(async (trx) => {
        await trx`update users set email = ${moved.email} where id = ${user.id}`
        const asked = ask(user.email)
        await untilBlocked(sql, service)
        return { asked }
      })
      t.equal((await asked).statusCode, 202)
      t.same(sentTo(user), [], 'nobody who reads the address of before gets a link that serves')
      if (user === invited) t.equal((await confirm(await inbox.token(moved.email))).statusCode, 204)
      else t.same(sentTo(moved), [], 'nor does the new address, which is not verified')
    }
  })

  await t.test('4.7 a user has at most three valid links; another one replaces the oldest', async (t) => {
    const user = await createUser()
    const tokens = [await ask(user), await ask(user), await ask(user), await ask(user)]
    t.same((await confirm(tokens[0]!)).json(), invalid)
    t.equal((await confirm(tokens[1]!)).statusCode, 204)
    t.same((await confirm(tokens[3]!)).json(), invalid, 'and all of them with the first that has served')
  })

  await t.test('4.7 every address gets the same response, and an unknown one has no effect', async (t) => {
    const user = await createUser()
    const answers = await Promise.all(
      [user.email, 'nobody@example.com', 'no address', '', 'a@b\u00e9', `${'x'.repeat(1000)}`].map(request)
    )
    const [first] = answers
    for (const { statusCode, headers, body } of answers) {
      t.same(
        [statusCode, { ...headers, date: '' }, body], [202, { ...first!.headers, date: '' }, JSON.stringify(accepted)]
      )
    }
    await inbox.of(user.email, 1)
    t.same((await inject('POST', '/api/auth/password-reset')).json(), { errors: ['email is required'] })
    t.equal(inbox.mails.filter(({ to }) => to === 'nobody@example.com').length, 0)
  })

  await t.test('15.2 a token can be checked without being used, and the response says what the reset removes', async (t) => {
    const user = await createUser()
    const token = await ask(user)
    const check = (payload: object) => inject('POST', '/api/auth/password-reset/check', { payload })
    for (let times = 0; times < 2; times++) {
      const { statusCode, body, headers } = await check({ token })
      t.same([statusCode, headers['cache-control']], [200, 'no-store'])
      t.same(JSON.parse(body), { removes: [], mayKeep: false, email: user.email, isInvitation: false, invitedBy: null })
    }
    t.equal((await confirm(token)).statusCode, 204)
    for (const used of [token, 'x', '']) t.same((await check({ token: used })).json(), invalid)
    t.same((await check({})).json(), { errors: ['token is required'] })
    t.same((await check({ token: ['x'] })).json(), { errors: ['token must be a string'] })
  })

  await t.test('4.7 if two confirmations, or a change and a reset, race, exactly one wins and no session survives', async (t) => {
    for (let round = 0; round < 4; round++) {
      const user = await createUser()
      const [one, two] = [await ask(user), await ask(user)]
      const rivals = [
        () => confirm(one, `${NEXT} 1`), round % 2 ? () => confirm(one, `${NEXT} 2`) : () => confirm(two, `${NEXT} 2`),
      ]
      const statuses = (await Promise.all(rivals.map((rival) => rival()))).map(({ statusCode }) => statusCode)
      t.same([...statuses].sort(), [204, 400], 'two confirmations')
      t.equal(await tries(user, `${NEXT} ${statuses.indexOf(204) + 1}`), 200)
      t.equal(await works(user), 401)
    }
    for (let round = 0; round < 4; round++) {
      const user = await createUser()
      const other = await login(user)
      const token = await ask(user)
      const [changed, reset] = await Promise.all([
        change(user, { currentPassword: user.password, password: `${NEXT} 1` }), confirm(token, `${NEXT} 2`),
      ])
      const statuses = `${changed!.statusCode} ${reset!.statusCode}`
      t.ok(['204 400', '401 204'].includes(statuses), statuses)
      t.equal(await tries(user, `${NEXT} ${changed!.statusCode === 204 ? 1 : 2}`), 200)
      t.same([await works(user), await works(other)], [changed!.statusCode === 204 ? 200 : 401, 401])
    }
  })

  await t.test('4.7 an admin can invite a user without a password by a mail link', async (t) => {
    const user = await create()
    const response = await invite(user.id)
    t.same([response.statusCode, response.json()], [202, { message: 'The invitation is on its way' }])
    const [mail] = await inbox.of(user.email, 1)
    t.equal(mail!.subject, 'You have an account: set its password')
    t.match(mail!.text, /within 7 days/)
    const check = async (mail: Parameters<typeof tokenIn>[0]) =>
      (await inject('POST', '/api/auth/password-reset/check', { payload: { token: tokenIn(mail) } })).json()
    const { name } = (await inject('GET', `/api/users/${admin.id}`)).json()
    t.match(await check(mail!), { email: user.email, isInvitation: true, invitedBy: name })
    t.equal((await confirm(tokenIn(mail!))).statusCode, 204)
    t.equal(await tries(user, NEXT), 200)
    t.same(await actions(user.id), ['user.create', 'user.invite', 'password.reset', 'login'])
    t.same((await invite(user.id)).json(), { error: 'The user already has a password', code: 'PASSWORD_IS_SET' })
    for (const id of [randomUUID(), 'x']) t.equal((await invite(id)).json().code, 'USER_NOT_FOUND')
    t.equal((await invite(user.id, await createUser())).statusCode, 403)
    t.equal((await inject('POST', `/api/users/${user.id}/invitation`)).statusCode, 401)
  })
})

t.test('4.7 in a host with a mail server, the link leads to the host\'s page, and the log has no secret', async (t) => {
  const server = await startMailServer(t)
  const { mailer, close } = createSmtpMailer(server.url, 'usher@example.com', slowNode)
  t.teardown(close)
  const lines: string[] = []
  const app =
    Fastify({ pluginTimeout: 0, logger: { level: 'trace', stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  // In a schema of its own: any node with a mailer sends the mails of all.
  const mounted = {
    ...options,
    schema: uniqueSchema(t.name),
    uploadsDir: temporaryFolder(),
    prefix: '/accounts',
    mailer,
    passwordUrl: 'https://app.example.com/password?set=1',
  }
  await app.register(usher, mounted)
  const { inject, createUser } = await withUsers(app, mounted)
  const user = await createUser()
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const [mail] = await server.of(user.email, 1)
  t.match(mail!.text, /\nhttps:\/\/app\.example\.com\/password\?set=1#token=[\w-]{43}\n/)
  const token = tokenIn(mail!)
  const confirm = () => inject('POST', '/api/auth/password-reset/confirm', { payload: { token, password: NEXT } })
  t.same([(await confirm()).statusCode, (await confirm()).statusCode], [204, 400])
  t.equal((await inject('GET', '/set-password')).statusCode, 404, 'there is no page but the one of the host')
  await server.of(user.email, 2)
  for (const secret of [token, NEXT, user.password, user.email]) t.notOk(lines.join('').includes(secret))
})

nightly('4.7 a mailer that throws or hangs, or a database that fails, does not delay the response', async (t) => {
  const lines: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } }
  const start = (mailer: () => Promise<void>) =>
    createUsher(t, { ...options, schema: uniqueSchema(t.name), uploadsDir: temporaryFolder(), mailer }, { logger })
  const throwing = await start(async () => { throw Object.assign(new Error('no such mailbox'), { responseCode: 550 }) })
  const hung = Promise.withResolvers<void>()
  const hanging = await start(() => hung.promise)
  for (const { inject, createUser } of [throwing, hanging]) {
    const { email } = await createUser()
    t.equal((await inject('POST', '/api/auth/password-reset', { payload: { email } })).statusCode, 202)
  }
  hung.resolve()
  await until('the failure is logged', () => lines.some((line) => line.includes('A mail could not be sent')))
  const { email } = await throwing.createUser()
  const sql = openSql(t, throwing)
  await sql`alter table password_links rename to elsewhere`
  t.equal((await throwing.inject('POST', '/api/auth/password-reset', { payload: { email } })).statusCode, 202)
  await until(
    'the failure is logged', () => lines.some((line) => line.includes('A link to set a password could not be created'))
  )
  await sql`alter table elsewhere rename to password_links`

  await t.test('4.7 the number of links that wait to be created is limited', async (t) => {
    await sql.begin(async (trx) => {
      await trx`lock table password_links in access exclusive mode`
      const answers = await Promise.all(Array.from({ length: 203 }, () =>
        throwing.inject('POST', '/api/auth/password-reset', { payload: { email: 'nobody@example.com' } })))
      t.same(new Set(answers.map(({ statusCode }) => statusCode)), new Set([202]))
    })
    t.equal(lines.filter((line) =>
      line.includes('A link to set a password is not sent because too many requests are waiting')).length, 1)
  })
})

t.test('4.7 without a mailer a reset gets the same response and one log entry; an invitation is rejected', async (t) => {
  const lines: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } }
  const { mailer, ...rest } = options
  const { inject, admin, createUser } = await createUsher(t, rest, { logger })
  for (const email of [admin.email, admin.email, 'nobody@example.com']) {
    const response = await inject('POST', '/api/auth/password-reset', { payload: { email } })
    t.same([response.statusCode, response.json()], [202, accepted])
  }
  t.match(lines.map((line) => JSON.parse(line).msg), ['Links to set a password are not sent: there is no mailer'])
  const { id } = (await inject(
    'POST', '/api/users', { headers: admin.headers, payload: { name: 'New', email: 'new@example.com' } }
  )).json()
  const response = await inject('POST', `/api/users/${id}/invitation`, { headers: admin.headers })
  t.same([response.statusCode, response.json()], [
    409, { error: 'No mail can be sent: the service has no mailer', code: 'NO_MAILER' },
  ])
  const { headers, password } = await createUser()
  t.equal((await inject(
    'PUT', '/api/auth/password', { headers, payload: { currentPassword: password, password: NEXT } }
  )).statusCode, 204)
})

t.test('4 changes count toward the limit of logins, and resets have their own limit, for any address', async (t) => {
  const throttle = { account: { burst: 3, perMinute: 0.01 }, reset: { burst: 2, perMinute: 0.01 } }
  const { inject, createUser } = await createUsher(t, { ...options, passwordTokenSeconds: 119, throttle })
  const user = await createUser()
  const change = (currentPassword: string) =>
    inject('PUT', '/api/auth/password', { headers: user.headers, payload: { currentPassword, password: NEXT } })
  for (const status of [403, 403, 403, 429]) t.equal((await change('wrong')).statusCode, status)
  const limited = await change(user.password)
  t.same([limited.statusCode, limited.json().code], [429, 'TOO_MANY_REQUESTS'])
  t.match(limited.headers['retry-after'], /^\d+$/)
  for (const [index, remoteAddress] of ['192.0.2.1', '192.0.2.2'].entries()) {
    const request = (email: string) => inject('POST', '/api/auth/password-reset', { payload: { email }, remoteAddress })
    const emails = [
      [user.email, 'nobody@example.com', user.email], ['other@example.com', 'other@example.com', 'other@example.com'],
    ][index]!
    const answers = []
    for (const email of emails) answers.push((await request(email)).statusCode)
    t.same(answers, [202, 202, 429])
  }
  const [mail] = await inbox.of(user.email, 1)
  t.match(mail!.text, 'within 1 minute.', 'no more than is so')
})
