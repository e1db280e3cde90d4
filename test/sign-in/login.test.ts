import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { hash } from '@node-rs/argon2'
import Fastify from 'fastify'
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import t from 'tap'
import usher from '../../app.ts'
import { createUsher, withUsers, type LoggedIn } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const WRONG = { error: 'Email or password is wrong', code: 'INVALID_CREDENTIALS' }
const COOKIE = /^[0-9a-f-]{36}\.[\w-]{43}\.0\.[\w-]{43}$/

const handles = await createUsher(t, { passwordHash: undefined })
const { app, inject, createUser, login, admin, options } = handles
const url = await app.listen({ port: 0, host: '127.0.0.1' })

t.test('4 login, the protected route and logout', async (t) => {
  const sql = openSql(t, handles)
  const user = await createUser({ email: 'Ada@Example.com' })
  const enter = (payload: object, headers = {}) => inject('POST', '/api/auth/login', { payload, headers })

  t.test('4.1 POST /api/auth/login returns 200 with a token and Set-Cookie (given)', async (t) => {
    const response = await enter({ email: user.email, password: user.password })
    t.equal(response.statusCode, 200)
    const { token, user: { createdAt, updatedAt, ...rest }, ...more } = response.json()
    t.same(more, { tokenType: 'Bearer', expiresIn: 900 })
    t.same(rest, {
      id: user.id,
      name: 'Somebody',
      email: 'Ada@Example.com',
      emailVerified: false,
      role: 'user',
      kind: 'person',
      disabled: false,
    })
    t.equal((await inject('GET', '/api/protected', { headers: { authorization: `Bearer ${token}` } })).statusCode, 200)
    t.equal(response.cookies.length, 1)
    t.equal(response.headers['cache-control'], 'no-store')
  })

  t.test('4 the token is signed with EdDSA, has kid, iss, aud, sub, sid, role, amr, auth_time, iat and exp, and lives 15 minutes', async (t) => {
    const { keys: [key] } = (await inject('GET', '/.well-known/jwks.json')).json()
    t.same(decodeProtectedHeader(user.token), { alg: 'EdDSA', typ: 'JWT', kid: key.kid })
    const { sid, iat, exp, ...claims } = decodeJwt(user.token)
    t.same(
      claims, { iss: 'usher', aud: 'usher', sub: user.id, role: 'user', amr: ['pwd'], auth_time: claims.auth_time }
    )
    t.ok(Math.abs(iat! - Number(claims.auth_time)) < 10)
    t.equal(exp! - iat!, 900)
    t.ok(Math.abs(iat! - Date.now() / 1000) < 10)
    t.same(await sql`select user_id from sessions where id = ${sid as string}`, [{ user_id: user.id }])
  })

  t.test('4 the cookie is HttpOnly, SameSite=Lax and limited to the auth routes; its secret is stored as a hash', async (t) => {
    const response = await enter({ email: user.email, password: user.password }, { 'user-agent': 'Tester/1' })
    const header = response.headers['set-cookie'] as string
    t.match(header, /^usher_session=[\w.-]+; Max-Age=\d+; Path=\/api\/auth; Expires=[^;]+; HttpOnly; SameSite=Lax$/)
    const { value, expires } = response.cookies[0] as unknown as { value: string, expires: Date }
    t.match(value, COOKIE)
    t.ok(Math.abs(expires.getTime() - Date.now() - 30 * 86400_000) < 10_000, 'as long as it may be idle')
    const [id, secret, , signature] = value.split('.') as [string, string, string, string]
    const secretHash = createHash('sha256').update(secret).digest()
    const rows = await sql`select address, user_agent from sessions where id = ${id} and secret_hash = ${secretHash}`
    t.same(rows, [{ address: '127.0.0.1', user_agent: 'Tester/1' }])
    const stored = JSON.stringify(await sql`select s::text from sessions s`)
    for (const part of [secret, signature]) {
      for (const written of [part, Buffer.from(part, 'base64url').toString('hex')]) t.notOk(stored.includes(written))
    }
  })

  t.test('4.1 a client without a User-Agent header can log in', async (t) => {
    const client = request(`${url}/api/auth/login`, { method: 'POST', headers: { 'content-type': 'application/json' } })
    client.end(JSON.stringify({ email: user.email, password: user.password }))
    const [response] = await once(client, 'response') as [IncomingMessage]
    t.equal(response.statusCode, 200)
    await text(response)
    t.same(await sql`select user_agent from sessions order by id desc limit 1`, [{ user_agent: '' }])
  })

  t.test('4.1 the email address is trimmed and not case-sensitive', async (t) => {
    for (const email of ['ada@example.com', ' ADA@EXAMPLE.COM ']) {
      t.equal((await enter({ email, password: user.password })).statusCode, 200)
    }
  })

  t.test('4 a failed login gets the same 401 for an unknown address, a wrong password and a user without a password', async (t) => {
    await inject(
      'POST', '/api/users', { headers: admin.headers, payload: { name: 'No password', email: 'none@example.com' } }
    )
    const attempts = [
      { email: 'nobody@example.com', password: user.password },
      { email: user.email, password: 'wrong' },
      { email: user.email, password: '' },
      { email: user.email, password: `${user.password} ` },
      { email: user.email, password: user.password.toUpperCase() },
      { email: user.email, password: 'x'.repeat(1024) },
      { email: 'none@example.com', password: user.password },
      { email: 'none@example.com', password: '' },
      { email: 'none@example.com', password: 'the password of nobody' },
      { email: 'nobody@example.com', password: 'the password of nobody' },
      { email: '', password: 'x' },
      { email: 'no address', password: 'x' },
      { email: "' or 1=1 --", password: 'x' },
      { email: '%@example.com', password: user.password },
    ]
    for (const attempt of attempts) {
      const response = await enter(attempt)
      t.same([response.statusCode, response.json()], [401, WRONG], JSON.stringify(attempt).slice(0, 80))
      t.equal(response.headers['set-cookie'], undefined)
    }
  })

  t.test('4.1 an invalid body gets 400 with all its problems', async (t) => {
    const refused: [unknown, string[]][] = [
      [{}, ['email is required', 'password is required']],
      [{ email: 1, password: ['x'] }, ['email must be a string', 'password must be a string']],
      [{ email: null, password: null }, ['email must be a string', 'password must be a string']],
      [{ email: { $ne: null }, password: { $ne: null } }, ['email must be a string', 'password must be a string']],
      [{ email: 'a\u0000@b', password: 'a\u0000b' }, [
        'email must not contain control characters', 'password must not contain control characters',
      ]],
      [{ email: '\ud800', password: '\ud800' }, [
        'email must not contain control characters', 'password must not contain control characters',
      ]],
      [{ email: 'a'.repeat(1025), password: 'p'.repeat(1025) }, [
        'email must be at most 1024 characters', 'password must be at most 1024 characters',
      ]],
      [[], ['body must be an object']],
      [null, ['body must be an object']],
    ]
    for (const [body, errors] of refused) {
      const response = await inject(
        'POST', '/api/auth/login', { headers: { 'content-type': 'application/json' }, payload: JSON.stringify(body) }
      )
      t.same([response.statusCode, response.json()], [400, { errors }], JSON.stringify(body).slice(0, 80))
    }
  })

  t.test('4 passwords are stored as argon2id with at least 19 MiB and t=2', async (t) => {
    const [row] = await sql`select password_hash from users where id = ${user.id}`
    const [, memory, passes] = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$/.exec(row!.password_hash)!
    t.ok(Number(memory) >= 19456 && Number(passes) >= 2, row!.password_hash)
    t.notMatch(JSON.stringify(await sql`select u::text from users u`), user.password)
  })

  t.test('4 a login replaces a hash with weaker parameters and keeps one with stronger parameters', async (t) => {
    const { id, email, password } = await createUser()
    const kept = async () =>
      (await sql<[{ hash: string }]>`select password_hash as hash from users where id = ${id}`)[0].hash
    for (const weak of [{ memoryCost: 8192, timeCost: 2 }, { memoryCost: 19456, timeCost: 1 }]) {
      await sql`update users set password_hash = ${await hash(password, { ...weak, parallelism: 1 })} where id = ${id}`
      t.equal((await enter({ email, password: 'wrong' })).statusCode, 401)
      t.match(await kept(), `m=${weak.memoryCost},t=${weak.timeCost}`)
      t.equal((await enter({ email, password })).statusCode, 200)
      t.match(await kept(), /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
      t.equal((await enter({ email, password })).statusCode, 200)
    }
    const strong = await hash(password, { memoryCost: 20000, timeCost: 3, parallelism: 1 })
    await sql`update users set password_hash = ${strong} where id = ${id}`
    t.equal((await enter({ email, password })).statusCode, 200)
    t.equal(await kept(), strong)
  })

  t.test('4.8 GET /api/protected returns 200 with { user }, the actor (given)', async (t) => {
    const response = await inject('GET', '/api/protected', { headers: user.headers })
    t.equal(response.statusCode, 200)
    t.same(response.json(), { user: (await inject('GET', `/api/users/${user.id}`)).json() })
  })

  t.test('4.8 the token of a user who was deleted a moment ago gets 401', async (t) => {
    const gone = await createUser()
    // The triggers are disabled, so the node receives no notification.
    await sql.begin(async (trx) => {
      await trx`alter table sessions disable trigger user`
      await trx`delete from users where id = ${gone.id}`
      await trx`alter table sessions enable trigger user`
    })
    const response = await inject('GET', '/api/protected', { headers: gone.headers })
    t.same([response.statusCode, response.json().code], [401, 'INVALID_TOKEN'])
  })

  t.test('1.5 a protected operation without a valid bearer token gets 401 { error } and WWW-Authenticate (given)', async (t) => {
    const operations = [
      ['GET', '/api/protected'], ['POST', '/api/users'], ['PUT', `/api/users/${user.id}`],
      ['DELETE', `/api/users/${user.id}`], ['PUT', '/api/users/x'], ['DELETE', '/api/users/x'],
    ] as const
    for (const [method, path] of operations) {
      const absent = await inject(method, path)
      t.same(
        [absent.statusCode, absent.json()],
        [401, { error: 'A bearer token is required', code: 'UNAUTHENTICATED' }],
        `${method} ${path}`
      )
      t.equal(absent.headers['www-authenticate'], 'Bearer')
      const bad = await inject(method, path, { headers: { authorization: 'Bearer x' } })
      t.same(
        [bad.statusCode, bad.json()],
        [401, { error: 'The bearer token is invalid, expired or revoked', code: 'INVALID_TOKEN' }],
        `${method} ${path}`
      )
      t.equal(bad.headers['www-authenticate'], 'Bearer error="invalid_token"')
    }
  })

  t.test('1.5 a cookie alone does not authenticate', async (t) => {
    const secret = user.cookie.split('=')[1]!
    for (const headers of [
      { cookie: user.cookie }, { cookie: `token=${user.token}; Authorization=Bearer ${user.token}` },
    ] as Record<string, string>[]) {
      const response = await inject('GET', '/api/protected', { headers })
      t.same([response.statusCode, response.headers['www-authenticate']], [401, 'Bearer'])
    }
    t.equal((await inject('GET', '/api/protected', { headers: { authorization: `Bearer ${secret}` } })).statusCode, 401)
    t.equal((await inject('GET', `/api/protected?access_token=${user.token}`)).statusCode, 401)
  })

  t.test('4.3 POST /api/auth/logout with the token returns 204, ends the session and clears the cookie', async (t) => {
    const session = await login(user)
    const response = await inject('POST', '/api/auth/logout', { headers: session.headers })
    t.same([response.statusCode, response.body], [204, ''])
    t.equal(
      response.headers['set-cookie'],
      'usher_session=; Max-Age=0; Path=/api/auth; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Lax'
    )
    t.equal((await inject('GET', '/api/protected', { headers: session.headers })).statusCode, 401)
    t.equal((await inject('POST', '/api/auth/logout', { headers: session.headers })).statusCode, 401, 'a second time')
    t.equal((await inject('GET', '/api/protected', { headers: user.headers })).statusCode, 200, 'other sessions go on')
  })

  t.test('4.3 logout with the cookie returns 204 if Origin is the same or missing', async (t) => {
    const own: Record<string, string>[] = [{}, { origin: 'http://localhost:80', host: 'localhost:80' }, {
      origin: 'http://api.example.com', host: 'api.example.com',
    }]
    for (const headers of own) {
      const session = await login(user)
      const response = await inject(
        'POST', '/api/auth/logout', { headers: { ...headers, cookie: `a=b; ${session.cookie}` } }
      )
      t.equal(response.statusCode, 204, JSON.stringify(headers))
      t.match(response.headers['set-cookie'], /^usher_session=; .*1970/)
      t.equal((await inject('GET', '/api/protected', { headers: session.headers })).statusCode, 401)
    }
  })

  t.test('4.3 logout with the cookie from another origin gets 403, and the session continues', async (t) => {
    const session = await login(user)
    for (const origin of [
      'https://evil.example', 'http://localhost:81', 'https://localhost:80', 'http://localhost:80.evil.example', 'null',
      'http://sub.localhost:80',
    ]) {
      const response = await inject(
        'POST', '/api/auth/logout', { headers: { cookie: session.cookie, origin, host: 'localhost:80' } }
      )
      t.same(
        [response.statusCode, response.json()],
        [403, { error: 'Pages of this origin may not send this request', code: 'ORIGIN_NOT_ALLOWED' }],
        origin
      )
    }
    t.equal((await inject('GET', '/api/protected', { headers: session.headers })).statusCode, 200)
  })

  t.test('4.3 logout without credentials or with an invalid token gets 401; an unknown cookie is cleared', async (t) => {
    const logout = (headers: Record<string, string>) => inject('POST', '/api/auth/logout', { headers })
    const none = await logout({})
    t.same([none.statusCode, none.headers['www-authenticate'], none.json().code], [401, 'Bearer', 'UNAUTHENTICATED'])
    for (const cookie of ['usher_session=', 'usher_session', 'other=1', ';;=;', '%%%']) {
      t.equal((await logout({ cookie })).statusCode, 401, cookie)
    }
    for (const authorization of ['Bearer x', 'Basic eDp5']) {
      t.equal((await logout({ authorization })).statusCode, 401)
      t.equal((await logout({ authorization, cookie: 'my_usher_session=x' })).statusCode, 401, 'another cookie')
    }
    const unknown = user.cookie.replace(/\..{43}\./, `.${'x'.repeat(43)}.`)
    for (const cookie of [
      'usher_session=x', `usher_session=${'x'.repeat(4000)}`, 'usher_session=%00%ED%A0%80', unknown,
    ]) {
      const response = await logout({ cookie })
      t.equal(response.statusCode, 204, cookie.slice(0, 40))
      t.match(response.headers['set-cookie'], /^usher_session=; /)
    }
    t.equal((await inject('GET', '/api/protected', { headers: user.headers })).statusCode, 200)
  })
})

nightly('4.2, 4.3 what else a client sends does not keep its session cookie from working', async (t) => {
  const user = await createUser()
  const refresh = (headers: Record<string, string>) => inject('POST', '/api/auth/refresh', { headers })
  const logout = (headers: Record<string, string>) => inject('POST', '/api/auth/logout', { headers })
  const works = async ({ headers }: LoggedIn) => (await inject('GET', '/api/protected', { headers })).statusCode === 200
  const ended = await login(user)
  await logout(ended.headers)
  const expired = await (await createUsher(t, { ...options, accessTokenSeconds: 1 })).login(user)
  await until('the expiry of a token', async () => !await works(expired))
  const unusable = {
    'the token of an ended session': ended.headers.authorization,
    'an expired token': expired.headers.authorization,
    'credentials for a proxy': 'Basic eDp5',
    'a token that a script has not got': 'Bearer undefined',
    'no token': 'Bearer',
    rubbish: '%',
  }

  for (const [what, authorization] of Object.entries(unusable)) {
    await t.test(`4.2, 4.3 ${what} beside a live cookie: refresh gets 200, and logout ends the session of the cookie`, async (t) => {
      const session = await login(user)
      const refreshed = await refresh({ authorization, cookie: session.cookie })
      t.equal(refreshed.statusCode, 200)
      const { value } = refreshed.cookies[0]!
      const response = await logout({ authorization, cookie: `usher_session=${value}` })
      t.strictSame([response.statusCode, response.headers['www-authenticate']], [204, undefined])
      t.match(response.headers['set-cookie'], /^usher_session=; /)
      t.notOk(await works(session))
      t.equal((await refresh({ authorization, cookie: `usher_session=${value}` })).statusCode, 401)
    })
  }

  await t.test('4.3 an unusable token beside a cookie does not let another origin log the user out', async (t) => {
    const session = await login(user)
    const headers = {
      authorization: 'Bearer x', cookie: session.cookie, origin: 'https://evil.example', host: 'localhost:80',
    }
    t.equal((await logout(headers)).statusCode, 403)
    t.ok(await works(session))
  })

  await t.test('4.3 a token and a cookie of different sessions: logout ends both, but from another origin only that of the token', async (t) => {
    const [first, second] = [await login(user), await login(admin)]
    t.equal((await logout({ ...first.headers, cookie: second.cookie })).statusCode, 204)
    t.strictSame([await works(first), await works(second)], [false, false])
    const [third, fourth] = [await login(user), await login(admin)]
    const response =
      await logout({ ...third.headers, cookie: fourth.cookie, origin: 'https://evil.example', host: 'localhost:80' })
    t.strictSame([response.statusCode, response.headers['set-cookie']], [204, undefined])
    t.strictSame([await works(third), await works(fourth)], [false, true])
    const [entry] = (await inject('GET', '/api/audit?action=logout', { headers: (await login(admin)).headers })).json()
    t.match(entry, { actorId: user.id, userId: user.id }, 'each is logged as that of its user')
  })

  const others: Record<string, (cookie: string) => string> = {
    'a cookie whose name ends like it': (cookie) => `my_usher_session=x; ${cookie}`,
    'a cookie whose name begins like it': (cookie) => `usher_session_2=x; ${cookie}`,
    'a cookie whose name differs in case': (cookie) => `Usher_Session=x; ${cookie}`,
    'a cookie whose value contains its name': (cookie) => `${cookie}; last=usher_session=x`,
    'a cookie without a name': (cookie) => `=x; ${cookie}`,
    'the same cookie twice': (cookie) => `${cookie}; ${cookie}`,
    'a quoted value': (cookie) => cookie.replace(/=(.*)$/, '="$1"'),
    'no space, or many': (cookie) => `a=b;${cookie} \t;  c=d`,
  }
  for (const [what, add] of Object.entries(others)) {
    await t.test(`4.2, 4.3 ${what} does not hide the session cookie (RFC 6265)`, async (t) => {
      const session = await login(user)
      const refreshed = await refresh({ cookie: add(session.cookie) })
      t.equal(refreshed.statusCode, 200)
      t.equal((await logout({ cookie: add(session.cookie) })).statusCode, 204)
      t.notOk(await works(session))
    })
  }

  await t.test('4.3 if a neighbouring domain has set a second cookie of the name, logout ends the session of the genuine one', async (t) => {
    for (const order of [[0, 1], [1, 0]]) {
      const session = await login(user)
      const cookies = [session.cookie, session.cookie.replace(/\..{43}\./, `.${'x'.repeat(43)}.`)]
      t.equal((await logout({ cookie: order.map((index) => cookies[index]).join('; ') })).statusCode, 204)
      t.notOk(await works(session))
    }
  })
})

t.test('4 the cookie works under a prefix, over TLS, and for origins that the host allows', async (t) => {
  const app = Fastify({ pluginTimeout: 0, trustProxy: true })
  t.teardown(() => app.close())
  const mounted = {
    ...options, prefix: '/accounts', origins: ['https://app.example.com'], publicUrl: 'https://public.example.com/base',
  }
  await app.register(usher, mounted)
  const { admin, inject } = await withUsers(app, mounted)
  const login = (headers: object) => inject(
    'POST', '/api/auth/login', { headers: { ...headers }, payload: { email: admin.email, password: admin.password } }
  )

  const secure = await login({ 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.7' })
  t.match(
    secure.headers['set-cookie'],
    /^usher_session=[\w.-]+; Max-Age=\d+; Path=\/base\/accounts\/api\/auth; Expires=[^;]+; HttpOnly; Secure; SameSite=Lax$/
  )
  t.match((await login({ 'x-forwarded-proto': 'http' })).headers['set-cookie'], /; Secure;/, 'the public URL is https')
  const local = { ...options, prefix: '/local', decoratorName: 'local', publicUrl: 'http://public.example.com' }
  const plain = Fastify({ pluginTimeout: 0, trustProxy: true })
  t.teardown(() => plain.close())
  await plain.register(usher, local)
  const users = await withUsers(plain, local)
  const loginPlain = (headers: object) => users.inject(
    'POST', '/api/auth/login', { headers: { ...headers }, payload: { email: admin.email, password: admin.password } }
  )
  t.match((await loginPlain({ 'x-forwarded-proto': 'https' })).headers['set-cookie'], /; Secure;/)
  t.match((await loginPlain({ 'x-forwarded-proto': 'HTTPS' })).headers['set-cookie'], /; Secure;/, 'in any case')
  t.notMatch((await loginPlain({ 'x-forwarded-proto': 'http' })).headers['set-cookie'], /Secure/)

  for (const origin of ['https://app.example.com', 'https://public.example.com', 'https://api.example.com']) {
    const cookie = (await login({})).headers['set-cookie'] as string
    const headers = { cookie: cookie.split(';')[0]!, origin, host: 'api.example.com', 'x-forwarded-proto': 'https' }
    const response = await inject('POST', '/api/auth/logout', { headers })
    t.equal(response.statusCode, 204, origin)
    t.match(
      response.headers['set-cookie'], /^usher_session=; Max-Age=0; Path=\/base\/accounts\/api\/auth; .*; Secure; /
    )
  }
  const refused = await inject(
    'POST', '/api/auth/logout', { headers: { cookie: admin.cookie, origin: 'https://public.example.com/base' } }
  )
  t.equal(refused.statusCode, 403)

  // A proxy may add the port.
  const sameHost: [origin: string, host: string, protocol: string, status: number][] = [
    ['https://api.example.com', 'api.example.com:443', 'https', 204],
    ['https://api.example.com', 'API.Example.COM', 'https', 204],
    ['https://api.example.com', 'api.example.com', 'http', 403],
    ['https://APP.example.com:443', 'api.example.com', 'https', 204],
    ['http://api.example.com', 'api.example.com:80', 'http', 204],
    ['http://api.example.com', 'api.example.com', 'https', 403],
    ['https://api.example.com:8443', 'api.example.com', 'https', 403],
    ['https://evil.example.com', 'api.example.com', 'https', 403],
    ['null', 'api.example.com', 'https', 403],
  ]
  for (const [origin, host, protocol, status] of sameHost) {
    const cookie = `${(await login({})).headers['set-cookie']}`.split(';')[0]!
    const headers = { cookie, origin, host, 'x-forwarded-proto': protocol }
    const { statusCode } = await inject('POST', '/api/auth/logout', { headers })
    t.equal(statusCode, status, `${origin} at ${protocol}://${host}`)
  }
})

t.test('4 logins are recorded in the account log, and failures are counted per account and per network', async (t) => {
  const limit = { burst: 2, perMinute: 0.01 }
  const plenty = { burst: 1000, perMinute: 1000 }
  const handles = await createUsher(
    t,
    { throttle: { account: limit, address: { burst: 6, perMinute: 0.01 }, refresh: limit, reset: plenty } },
    { trustProxy: true }
  )
  const { inject, createUser } = handles
  const sql = openSql(t, handles)
  const [user, victim] = [await createUser(), await createUser()]
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const enter = async (payload: { email: string, password: string }, address: string) =>
    inject('POST', '/api/auth/login', { headers: from(address), payload })
  const wrong = { password: 'wrong' }

  t.strictSame(
    (await sql`select action, actor_id, session_id from audit where user_id = ${user.id} and action like 'login%'`)[0],
    { action: 'login', actor_id: user.id, session_id: decodeJwt(user.token).sid }
  )
  for (const email of [victim.email, 'nobody@example.com']) {
    for (const status of [401, 401, 429, 429]) {
      const response = await enter({ email, ...wrong }, '192.0.2.1')
      t.equal(response.statusCode, status, email)
      if (status === 429) {
        t.match([response.headers['retry-after'], response.json().code], [/^\d+$/, 'TOO_MANY_REQUESTS'])
      }
    }
  }
  t.strictSame([
    ...await sql`select user_id, actor_id, session_id, address from audit where action = 'login.failed' order by id`,
  ], [
    ...Array(2).fill({ user_id: victim.id, actor_id: null, session_id: null, address: '192.0.2.1' }),
    ...Array(2).fill({ user_id: null, actor_id: null, session_id: null, address: '192.0.2.1' }),
  ])
  t.equal((await enter(victim, '192.0.2.2')).statusCode, 429, 'from anywhere unknown')
  for (let count = 0; count < 3; count++) {
    t.equal(
      (await enter(victim, '127.0.0.1')).statusCode, 200, 'but its owner comes in, where the account has been seen'
    )
  }
  await inject('POST', '/api/auth/logout', { headers: victim.headers })
  await sql`delete from sessions where user_id = ${victim.id}`
  t.equal((await enter(victim, '127.0.0.1')).statusCode, 200, 'also when its sessions have ended')
  for (const status of [401, 401, 429]) {
    t.equal((await enter({ email: `${status}@example.com`, ...wrong }, '192.0.2.1')).statusCode, status, 'the address')
  }

  const refresh = (cookie: string) => inject('POST', '/api/auth/refresh', { headers: { ...from('192.0.2.3'), cookie } })
  const forged = user.cookie.replace(/\.[^.]+$/, `.${'x'.repeat(43)}`)
  for (let count = 0; count < 3; count++) {
    t.equal((await refresh('usher_session=x')).statusCode, 401, 'what is no cookie costs nothing')
  }
  for (let count = 0; count < 3; count++) {
    t.equal((await refresh(user.cookie)).statusCode, 200, 'what succeeds is given back')
  }
  for (const status of [401, 401, 429]) t.equal((await refresh(forged)).statusCode, status, 'a forged one')
  t.equal((await refresh(user.cookie)).statusCode, 429)
})

t.test('4.9 GET /.well-known/jwks.json returns the public keys, with which anyone can verify a token', async (t) => {
  const response = await inject('GET', '/.well-known/jwks.json')
  t.equal(response.statusCode, 200)
  t.equal(response.headers['cache-control'], 'private, no-cache')
  const { keys } = response.json()
  t.same(
    keys.map((key: object) => Object.keys(key).sort()), [['alg', 'crv', 'kid', 'kty', 'use', 'x']], 'nothing private'
  )
  t.match(keys[0], { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' })

  const { payload } = await jwtVerify(admin.token, createRemoteJWKSet(new URL('/.well-known/jwks.json', url)), {
    issuer: 'usher', audience: 'usher', algorithms: ['EdDSA'],
  })
  t.equal(payload.sub, admin.id)
})

t.test('4 responses about an account, errors included, are not cached', async (t) => {
  const admin = await createUser({ role: 'admin' })
  const { headers } = admin
  const wrong = { payload: { email: admin.email, password: 'a wrong one' } }
  const answers: [method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, rest: object, status: number][] = [
    ['POST', '/api/auth/login', { payload: admin }, 200],
    ['POST', '/api/auth/login', wrong, 401],
    ['POST', '/api/auth/login', { payload: {} }, 400],
    ['POST', '/api/auth/refresh', { headers: { cookie: (await login(admin)).cookie } }, 200],
    ['POST', '/api/auth/refresh', {}, 401],
    ['POST', '/api/auth/logout', {}, 401],
    ['GET', '/api/protected', { headers }, 200],
    ['GET', '/api/protected', {}, 401],
    ['GET', '/api/auth/sessions', {}, 401],
    ['DELETE', '/api/auth/sessions/unknown', { headers }, 404],
    ['DELETE', '/api/auth/sessions', { headers }, 204],
    [
      'PUT', '/api/auth/password',
      { headers, payload: { currentPassword: 'a wrong one', password: 'another long one' } }, 403,
    ],
    ['POST', '/api/auth/password-reset', { payload: { email: admin.email } }, 202],
    ['POST', '/api/auth/password-reset/confirm', { payload: { token: 'x', password: 'another long one' } }, 400],
    ['POST', `/api/users/${admin.id}/invitation`, { headers }, 409],
    ['GET', '/api/audit?limit=0', { headers }, 400],
    ['POST', '/api/auth/logout', { headers }, 204],
  ]
  for (const [method, path, rest, status] of answers) {
    const response = await inject(method, path, rest)
    t.same([response.statusCode, response.headers['cache-control']], [status, 'no-store'], `${method} ${path}`)
  }
})

t.test('4 a login with a live session cookie ends that session', async (t) => {
  const sql = openSql(t, handles)
  const [first, second] = [await createUser(), await createUser()]
  const sessionOf = ({ token }: { token: string }) => decodeJwt(token).sid as string
  const enter = (user: { email: string, password: string }, headers: object) =>
    inject('POST', '/api/auth/login', { payload: user, headers: { ...headers } })
  const works = async (user: { headers: object }) =>
    (await inject('GET', '/api/protected', { headers: { ...user.headers } })).statusCode

  t.equal((await enter(first, { cookie: first.cookie, origin: 'https://evil.example.com' })).statusCode, 200)
  t.equal((await enter({ ...first, password: 'a wrong one' }, { cookie: first.cookie })).statusCode, 401)
  t.equal(
    (await enter(first, { cookie: first.cookie.replace(/\.[\w-]{43}\./, `.${'x'.repeat(43)}.`) })).statusCode, 200
  )
  t.equal(
    await works(first), 200, 'not for a page of another origin, by a failed login, or by a cookie with another secret'
  )

  const response = await enter(first, { cookie: first.cookie })
  t.equal(response.statusCode, 200)
  t.equal(await works(first), 401, 'at once')
  t.equal(await works({ headers: { authorization: `Bearer ${response.json().token}` } }), 200)
  t.equal((await inject('POST', '/api/auth/refresh', { headers: { cookie: first.cookie } })).statusCode, 401)
  t.equal(
    (await enter(first, { cookie: first.cookie })).statusCode, 200, 'a cookie whose session has ended is no hindrance'
  )

  t.equal((await enter(first, { cookie: second.cookie })).statusCode, 200)
  t.equal(await works(second), 401, 'also the session of another user of the same browser')
  t.equal(await works(admin), 200)
  t.same(await sql`select actor_id, user_id, session_id from audit where action = 'session.end' and actor_id = ${first.id} order by id`, [
    { actor_id: first.id, user_id: first.id, session_id: sessionOf(first) },
    { actor_id: first.id, user_id: second.id, session_id: sessionOf(second) },
  ])
})
