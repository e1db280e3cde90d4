import { createHash, randomUUID } from 'node:crypto'
import t from 'tap'
import { audiences } from '../../app.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { createMailer } from '../helpers/mail.ts'
import { openSql, untilBlocked } from '../helpers/sql.ts'

const invalid = { errors: ['token is invalid or has expired'] }
const NEXT = 'a password of tomorrow'

const inbox = createMailer()
const service = await createUsher(t, { mailer: inbox.mailer, publicUrl: 'https://api.example.com/base', signUp: true })
const { options, inject, admin, createUser } = service
const sql = openSql(t, service)

const verify = (id: string, { headers } = admin) => inject('POST', `/api/users/${id}/email-verification`, { headers })
const confirm = (token: string, { headers }: { headers?: LoggedIn['headers'] } = {}) =>
  inject('POST', '/api/auth/email-verification/confirm', { payload: { token }, ...headers && { headers } })
const patch = (id: string, payload: object) => inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload })
const isVerified = async (id: string) => (await inject('GET', `/api/users/${id}`)).json().emailVerified as boolean
const changedAt = async (id: string) =>
  (await sql`select email_changed_at as at from users where id = ${id}`)[0]!['at'] as Date | null
const requestReset = (email: string) => inject('POST', '/api/auth/password-reset', { payload: { email } })
const confirmReset = (token: string, password = NEXT) =>
  inject('POST', '/api/auth/password-reset/confirm', { payload: { token, password } })

async function ask (user: Pick<LoggedIn, 'id' | 'email' | 'headers'>, count = 1): Promise<string> {
  t.equal((await verify(user.id, user as LoggedIn)).statusCode, 202)
  return inbox.token(user.email, count)
}

t.test('11.3 the link verifies the current address, once', async (t) => {
  const user = await createUser()
  t.equal(await isVerified(user.id), false)
  const response = await verify(user.id, user)
  t.same([response.statusCode, response.json()], [202, { message: 'The link is on its way' }])
  const token = await inbox.token(user.email)
  const [mail] = await inbox.of(user.email, 1)
  t.equal(mail!.subject, 'Confirm your e-mail address')
  t.match(mail!.text, /within 1 day, [^]*\n\nhttps:\/\/api\.example\.com\/base\/verify-email#token=[\w-]{43}\n\n/)
  t.same(
    [...await sql`select encode(hash, 'hex') as hash from verification_links where user_id = ${user.id}`],
    [{ hash: createHash('sha256').update(token).digest('hex') }],
    'stored hashed'
  )
  const before = (await inject('GET', `/api/users/${user.id}`)).json()
  const confirmed = await confirm(token, user)
  t.same([confirmed.statusCode, confirmed.body], [204, ''])
  const after = (await inject('GET', `/api/users/${user.id}`)).json()
  t.equal(after.emailVerified, true)
  t.ok(after.updatedAt > before.updatedAt)
  t.same((await sql`select action, actor_id from audit where user_id = ${user.id} order by id desc limit 1`)[0], {
    action: 'user.email-verify', actor_id: user.id,
  })
  t.same((await confirm(token)).json(), invalid)
  const again = await verify(user.id, user)
  t.same([again.statusCode, again.json()], [
    409, { error: 'The email address of this user is verified already', code: 'EMAIL_VERIFIED' },
  ])
  t.equal((await inject('GET', '/api/protected', { headers: user.headers })).statusCode, 200, 'no session ends')
})

t.test('11.3 the link alone does not make an account of a stranger one of the owner of the mailbox', async (t) => {
  const stranger = await createUser()
  const token = await ask(stranger)
  const check = await inject('POST', '/api/auth/email-verification/check', { payload: { token } })
  t.same([check.statusCode, check.headers['password-required']], [204, 'true'])
  const alone = await confirm(token)
  t.same([alone.statusCode, alone.json()], [400, { errors: ['password is required'], code: 'PASSWORD_REQUIRED' }])
  const other = await createUser()
  t.equal((await confirm(token, other)).json().code, 'PASSWORD_REQUIRED', 'nor a session of somebody else')
  t.equal(await isVerified(stranger.id), false)
  const weak = await inject('POST', '/api/auth/email-verification/confirm', { payload: { token, password: stranger.email } })
  t.equal(weak.statusCode, 400, 'the rules for passwords hold')

  const payload = { token, password: NEXT }
  t.equal((await inject('POST', '/api/auth/email-verification/confirm', { payload })).statusCode, 204)
  t.equal(await isVerified(stranger.id), true)
  t.equal((await inject('GET', '/api/protected', { headers: stranger.headers })).statusCode, 401, 'no session is left')
  const login = (password: string) =>
    inject('POST', '/api/auth/login', { payload: { email: stranger.email, password } })
  t.same([(await login(stranger.password)).statusCode, (await login(NEXT)).statusCode], [401, 200])
  t.same((await inbox.of(stranger.email, 2)).map(({ subject }) => subject), ['Confirm your e-mail address', 'Your password was set'])
})

t.test('11.3 a link that is opened in a session of its user, by token or cookie, changes nothing else', async (t) => {
  const [byToken, byCookie, late] = [await createUser(), await createUser(), await createUser()]
  t.equal((await confirm(await ask(byToken), byToken)).statusCode, 204)
  const open = (token: string, cookie: string, origin: string | undefined) =>
    inject('POST', '/api/auth/email-verification/confirm', { payload: { token }, headers: { cookie, ...origin && { origin } } })
  const token = await ask(byCookie)
  t.equal((await open(token, byCookie.cookie, 'https://evil.example')).json().code, 'PASSWORD_REQUIRED', 'not for a page of another origin')
  t.equal((await open(token, `${byCookie.cookie}x`, undefined)).json().code, 'PASSWORD_REQUIRED', 'not with another cookie')
  t.equal((await open(token, byCookie.cookie, undefined)).statusCode, 204)
  for (const user of [byToken, byCookie]) {
    t.equal(await isVerified(user.id), true)
    t.equal((await inject('GET', '/api/protected', { headers: user.headers })).statusCode, 200, 'the session goes on')
  }
  const stale = await ask(late)
  await inject('POST', '/api/auth/logout', { headers: late.headers })
  t.equal((await open(stale, late.cookie, undefined)).json().code, 'PASSWORD_REQUIRED', 'a session that has ended is none')
})

t.test('11.3 an account that has an owner changes its address in a session of the owner only', async (t) => {
  const hiding = await createUsher(t, { ...options, policy: { 'users:read-email': audiences.owners } })
  const user = await createUser()
  t.equal((await confirm(await ask(user), user)).statusCode, 204)
  const email = `${randomUUID()}@example.com`
  const payload = { email }
  t.equal((await hiding.inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload })).statusCode, 200)
  const token = await inbox.token(email)
  const check = await inject('POST', '/api/auth/email-verification/check', { payload: { token } })
  t.same([check.statusCode, check.headers['login-required'], check.headers['password-required']], [204, 'true', undefined])
  const elsewhere = await inject('POST', '/api/auth/email-verification/confirm', { payload: { token, password: NEXT } })
  t.same([elsewhere.statusCode, elsewhere.json().code], [403, 'LOGIN_REQUIRED'])
  t.equal((await inject('POST', '/api/auth/login', { payload: { email: user.email, password: NEXT } })).statusCode, 401)
  t.equal((await confirm(token, user)).statusCode, 204, 'the link still works')
  t.equal((await inject('GET', `/api/users/${user.id}`, { headers: admin.headers })).json().email, email)
})

t.test('11.3 wrong, used and expired tokens get 400, and so do those of an address that has changed since', async (t) => {
  const [late, moved, back, gone] = [await createUser(), await createUser(), await createUser(), await createUser()]
  const tokens = [await ask(late), await ask(moved), await ask(back), await ask(gone)]
  await sql`update verification_links set expires_at = now() where user_id = ${late.id}`
  await patch(moved.id, { email: `new-${moved.email}` })
  for (const email of [`new-${back.email}`, back.email]) await patch(back.id, { email })
  await inject('DELETE', `/api/users/${gone.id}`, { headers: admin.headers })
  for (const token of [...tokens, '', 'x', 'x'.repeat(43), 'x'.repeat(1024), `${tokens[0]}x`]) {
    const response = await confirm(token)
    t.same([response.statusCode, response.json()], [400, invalid])
  }
  t.same((await inject('POST', '/api/auth/email-verification/confirm')).json(), { errors: ['token is required'] })
  t.same((await inject('POST', '/api/auth/email-verification/confirm', { payload: { token: {} } })).json(), {
    errors: ['token must be a string'],
  })
  for (const { id } of [late, moved, back]) t.equal(await isVerified(id), false)

  const racing = await createUser()
  const token = await ask(racing)
  const { confirmed } = await sql.begin(async (trx) => {
    await trx`update users set email = ${`new-${racing.email}`} where id = ${racing.id}`
    const confirmed = confirm(token, racing)
    await untilBlocked(sql, service)
    return { confirmed }
  })
  t.same((await confirmed).json(), invalid, 'an address that changes during the confirmation')
  t.equal(await isVerified(racing.id), false)
})

t.test('11.3 another address is not verified; another case is the same mailbox', async (t) => {
  for (const change of [
    (id: string, email: string) => patch(id, { email }),
    (id: string, email: string) =>
      inject('PUT', `/api/users/${id}`, { headers: admin.headers, payload: { name: 'Ada', email } }),
    (id: string, email: string) => sql`update users set email = ${email} where id = ${id}`,
  ]) {
    const user = await createUser()
    t.equal((await confirm(await ask(user), user)).statusCode, 204)
    await change(user.id, user.email)
    await change(user.id, user.email.toUpperCase())
    await patch(user.id, { name: 'Another' })
    t.same([await isVerified(user.id), await changedAt(user.id)], [true, null])
    await change(user.id, `new-${user.email}`)
    t.equal(await isVerified(user.id), false)
    t.ok(await changedAt(user.id))
  }
  const user = await createUser()
  const token = await ask(user)
  await patch(user.id, { email: user.email.toUpperCase() })
  t.equal((await confirm(token, user)).statusCode, 204, 'a link that was sent before a change of the case works')
})

t.test('11.3 links of resets and invitations verify the address too, as long as it is the current one', async (t) => {
  const user = await createUser()
  await requestReset(user.email)
  const stale = await inbox.token(user.email)
  t.equal((await confirmReset(stale)).statusCode, 204)
  t.equal(await isVerified(user.id), true)

  const invited = (await inject(
    'POST', '/api/users', { headers: admin.headers, payload: { name: 'Ada', email: `${randomUUID()}@example.com` } }
  )).json()
  const invite = () => inject('POST', `/api/users/${invited.id}/invitation`, { headers: admin.headers })
  await invite()
  const old = await inbox.token(invited.email)
  const email = `new-${invited.email}`
  await patch(invited.id, { email })
  t.same((await confirmReset(old)).json(), invalid)
  t.equal(await isVerified(invited.id), false)
  await invite()
  t.equal((await confirmReset(await inbox.token(email))).statusCode, 204, 'an admin may invite a new address at once')
  t.equal(await isVerified(invited.id), true)
})

t.test('11.3 who may request a link, and how often', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  t.equal((await inject('POST', `/api/users/${user.id}/email-verification`)).statusCode, 401)
  t.equal((await verify(user.id, other)).statusCode, 403)
  t.equal((await verify(user.id, admin)).statusCode, 202)
  for (const id of [randomUUID(), 'x', '%00']) t.equal((await verify(id)).json().code, 'USER_NOT_FOUND')
  const tokens = [await inbox.token(user.email), await ask(user, 2), await ask(user, 3), await ask(user, 4)]
  t.same((await confirm(tokens[0]!)).json(), invalid, 'three links at most are valid')
  t.equal((await confirm(tokens[1]!, user)).statusCode, 204)
  t.same((await confirm(tokens[3]!)).json(), invalid, 'and all of them are used with the first')

  const strict = await createUsher(t, { ...options, throttle: { reset: { burst: 2, perMinute: 0.2 } } })
  const [one, two] = [await strict.createUser(), await strict.createUser()]
  const send = async (user: LoggedIn) =>
    (await strict.inject('POST', `/api/users/${user.id}/email-verification`, { headers: user.headers })).statusCode
  const move = (user: LoggedIn, email: string) =>
    strict.inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email } })
  const moves = [await send(one)]
  for (const email of [`1-${one.email}`, `2-${one.email}`]) {
    await move(one, email)
    moves.push(await send(one))
  }
  t.same(moves, [202, 202, 429], 'a user, whatever addresses')
  await move(two, one.email)
  t.same([await send(two), await send(two), await send(two)], [202, 202, 429], 'and who has the address loses nothing by others')

  const { mailer, ...rest } = options
  const mute = await createUsher(t, { ...rest, signUp: false })
  const response = await mute.inject(
    'POST', `/api/users/${mute.admin.id}/email-verification`, { headers: mute.admin.headers }
  )
  t.same([response.statusCode, response.json().code], [409, 'NO_MAILER'])
})

t.test('11.3 a token of one kind is not accepted as one of another kind', async (t) => {
  const user = await createUser()
  const verification = await ask(user)
  await requestReset(user.email)
  const reset = await inbox.token(user.email, 2)
  const email = `${randomUUID()}@example.com`
  await inject('POST', '/api/auth/sign-up', { payload: { name: 'Ada', email, password: NEXT } })
  const signUp = await inbox.token(email)
  const moving = await createUser()
  await inject(
    'PATCH', `/api/users/${moving.id}`, { headers: moving.headers, payload: { email: `new-${moving.email}` } }
  )
  const undo = await inbox.token(moving.email)
  const [id, secret, , signature] = user.cookie.split('=')[1]!.split('.') as [string, string, string, string]
  const tokens: Record<string, string> = {
    verification,
    reset,
    'sign-up': signUp,
    undo,
    access: user.token,
    cookie: user.cookie.split('=')[1]!,
    id,
    secret,
    signature,
    user: user.id,
  }
  const uses: Record<string, (token: string) => Promise<{ statusCode: number, json (): unknown }>> = {
    verification: (token) => confirm(token, user),
    reset: confirmReset,
    'sign-up': (token) => inject('POST', '/api/auth/sign-up/confirm', { payload: { token, password: NEXT } }),
    undo: (token) => inject('POST', '/api/auth/undo', { payload: { token } }),
  }
  for (const [kind, token] of Object.entries(tokens)) {
    for (const [use, send] of Object.entries(uses)) {
      if (kind === use) continue
      const response = await send(token)
      t.same([response.statusCode, response.json()], [400, invalid], `${kind} as ${use}`)
    }
    if (kind !== 'access') {
      t.equal(
        (await inject('GET', '/api/protected', { headers: { authorization: `Bearer ${token}` } })).statusCode,
        401,
        `${kind} as bearer token`
      )
    }
    if (kind !== 'cookie') {
      t.equal(
        (await inject('POST', '/api/auth/refresh', { headers: { cookie: `usher_session=${token}` } })).statusCode,
        401,
        `${kind} as cookie`
      )
    }
  }
  const works: Record<string, number> = {}
  for (const [use, send] of Object.entries(uses)) works[use] = (await send(tokens[use]!)).statusCode
  t.same(works, { verification: 204, reset: 204, 'sign-up': 201, undo: 204 }, 'and nothing has used them up')
  t.same(
    (await inbox.of(`new-${moving.email}`, 1)).map(({ subject }) => subject),
    ['The e-mail address of your account was changed']
  )
})
