import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import t from 'tap'
import type { UsherOptions } from '../../app.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

const NOT_FOUND = { error: 'Session not found', code: 'SESSION_NOT_FOUND' }

const sessionOf = ({ token }: { token: string }) => decodeJwt(token).sid as string

const usher = await createUsher(t, {}, { trustProxy: true })

t.test('4.4 4.5 the sessions of a user', async (t) => {
  const { inject, login, createUser, admin } = usher
  const sql = openSql(t, usher)
  const works = async ({ headers }: LoggedIn) => (await inject('GET', '/api/protected', { headers })).statusCode === 200
  const list = async ({ headers }: LoggedIn) => (await inject('GET', '/api/auth/sessions', { headers })).json()
  const end = (by: LoggedIn, path = '') => inject('DELETE', `/api/auth/sessions${path}`, { headers: by.headers })
  const log = (userId: string) =>
    sql`select action, actor_id, session_id from audit where user_id = ${userId} and action <> 'login' and action <> 'user.create' order by session_id`

  t.test('4.4 GET /api/auth/sessions returns 200 with the actor\'s sessions, newest first', async (t) => {
    const first = await createUser()
    const from = { 'x-forwarded-for': '2001:db8::7', 'user-agent': 'Browser/9 (Somewhere)' }
    const { token, cookie } = (await inject(
      'POST', '/api/auth/login', { headers: from, payload: { email: first.email, password: first.password } }
    )
      .then((response) => ({ ...response.json(), cookie: response.headers['set-cookie'] }))) as {
      token: string, cookie: string
    }
    const response = await inject('GET', '/api/auth/sessions', { headers: first.headers })
    t.equal(response.statusCode, 200)
    const sessions = response.json() as Record<string, string>[]
    t.strictSame(sessions.map(({ createdAt, lastUsedAt, expiresAt, authTime, ...rest }) => rest), [
      {
        id: sessionOf({ token }),
        address: '2001:db8::7',
        userAgent: 'Browser/9 (Somewhere)',
        current: false,
        console: false,
        amr: ['pwd'],
      },
      {
        id: sessionOf(first),
        address: '127.0.0.1',
        userAgent: 'lightMyRequest',
        current: true,
        console: false,
        amr: ['pwd'],
      },
    ])
    for (const { createdAt, lastUsedAt, expiresAt, authTime } of sessions) {
      t.equal(authTime, createdAt)
      t.ok(Math.abs(Date.parse(createdAt!) - Date.now()) < 10_000)
      t.equal(lastUsedAt, createdAt)
      t.equal(Date.parse(expiresAt!) - Date.parse(createdAt!), 30 * 86400_000)
    }

    await sql`update sessions set last_used_at = now() - interval '1 day' where user_id = ${first.id}`
    const roaming = { 'x-forwarded-for': '192.0.2.1', 'user-agent': 'x'.repeat(5000) }
    t.equal((await inject(
      'POST', '/api/auth/refresh', { headers: { ...roaming, cookie: cookie.split(';')[0]! } }
    )).statusCode, 200)
    const [refreshed, other] = await list(first)
    t.match(refreshed, { address: '192.0.2.1', userAgent: 'x'.repeat(512), current: false })
    t.ok(Date.parse(refreshed.lastUsedAt) > Date.parse(other.lastUsedAt))
  })

  t.test('4.4 it does not list expired or ended sessions, or those of other users', async (t) => {
    const user = await createUser()
    await sql`update sessions set expires_at = now() where id = ${sessionOf(await login(user))}`
    await inject('POST', '/api/auth/logout', { headers: (await login(user)).headers })
    t.strictSame((await list(user)).map(({ id }: { id: string }) => id), [sessionOf(user)])
  })

  t.test('4.5 DELETE /api/auth/sessions/{id} returns 204 and ends only that session', async (t) => {
    const user = await createUser()
    const [one, two] = [await login(user), await login(user)]
    const response = await end(user, `/${sessionOf(one)}`)
    t.strictSame([response.statusCode, response.body], [204, ''])
    t.strictSame([await works(one), await works(two), await works(user)], [false, true, true])
    t.equal((await inject('POST', '/api/auth/refresh', { headers: { cookie: one.cookie } })).statusCode, 401)
    t.strictSame(
      [(await end(user, `/${sessionOf(one)}`)).json(), (await end(user, `/${sessionOf(one)}`)).statusCode],
      [NOT_FOUND, 404],
      'a second time'
    )
    t.equal((await end(user, `/${sessionOf(two).toUpperCase()}`)).statusCode, 204)
    t.notOk(await works(two))
    t.equal((await end(user, `/${sessionOf(user)}`)).statusCode, 204, 'the current one')
    t.notOk(await works(user))
    t.strictSame(
      [...await log(user.id)],
      [user, one, two].map((session) => ({ action: 'session.end', actor_id: user.id, session_id: sessionOf(session) }))
    )
  })

  t.test('4.5 another user\'s, an unknown or an expired session gets 404; an admin may end any session', async (t) => {
    const [user, other] = [await createUser(), await createUser()]
    const expired = await login(user)
    await sql`update sessions set expires_at = now() where id = ${sessionOf(expired)}`
    for (const id of [
      sessionOf(other), sessionOf(admin), sessionOf(expired), randomUUID(), user.id, 'x', '%00', "'", 'x'.repeat(300),
      `${sessionOf(user)}x`,
    ]) {
      const response = await end(user, `/${id}`)
      t.strictSame(
        [response.statusCode, response.json().error], [404, id.length > 200 ? 'Not found' : NOT_FOUND.error], id
      )
    }
    t.ok(await works(other))
    t.equal((await end(admin, `/${sessionOf(other)}`)).statusCode, 204)
    t.notOk(await works(other))
    t.strictSame(
      [...await log(other.id)], [{ action: 'session.end', actor_id: admin.id, session_id: sessionOf(other) }]
    )
  })

  t.test('4.5 DELETE /api/auth/sessions returns 204 and ends all sessions except the current one', async (t) => {
    const [user, bystander] = [await createUser(), await createUser()]
    const others = [await login(user), await login(user)]
    const response = await end(user)
    t.strictSame([response.statusCode, response.body], [204, ''])
    for (const session of others) t.notOk(await works(session))
    t.ok(await works(user))
    t.ok(await works(bystander))
    t.equal((await end(user)).statusCode, 204, 'with none')
    t.strictSame(
      [...await log(user.id)],
      others.map((session) => ({ action: 'session.end', actor_id: user.id, session_id: sessionOf(session) }))
    )
  })

  t.test('1.5 these routes require a bearer token and do not accept a cookie', async (t) => {
    for (const [method, path] of [['GET', ''], ['DELETE', ''], ['DELETE', `/${sessionOf(admin)}`]] as const) {
      const response = await inject(method, `/api/auth/sessions${path}`, { headers: { cookie: admin.cookie } })
      t.strictSame([response.statusCode, response.headers['www-authenticate']], [401, 'Bearer'])
    }
    t.ok(await works(admin))
    const wrong = await inject('POST', '/api/auth/sessions', { headers: admin.headers })
    t.strictSame([wrong.statusCode, wrong.headers.allow], [405, 'DELETE, GET, HEAD'])
  })

  t.test('4 a user has at most 100 sessions: opening another one ends the oldest', async (t) => {
    const user = await createUser()
    await sql`
      insert into sessions (id, user_id, secret_hash, rotation_key, amr, auth_time, address, user_agent, created_at, expires_at)
      select gen_random_uuid(), user_id, sha256(number::text::bytea), '', amr, auth_time, '', '', created_at + number * interval '1 microsecond', expires_at
      from sessions, generate_series(1, 98) as number where id = ${sessionOf(user)}`
    await login(user)
    t.ok(await works(user))
    const last = [...await Promise.all([login(user), login(user)]), await login(user)]
    const left = (await list(last[0]!)).map(({ id }: { id: string }) => id)
    t.equal(left.length, 100)
    for (const session of last) t.ok(left.includes(sessionOf(session)))
    t.notOk(left.includes(sessionOf(user)))
    t.equal((await sql`select 1 from ended_sessions where id = ${sessionOf(user)}`).length, 1)
  })
})

nightly('2 the policy of a host decides who may list and end sessions', async (t) => {
  const policy: UsherOptions['policy'] = {
    'sessions:list': ({ role }) => role === 'admin', 'sessions:end': () => false,
  }
  const { inject, createUser, admin } = await createUsher(t, { ...usher.options, policy })
  const user = await createUser()
  const status = async (method: 'GET' | 'DELETE', path: string, { headers }: LoggedIn) =>
    (await inject(method, `/api/auth/sessions${path}`, { headers })).statusCode
  t.strictSame([await status('GET', '', admin), await status('GET', '', user)], [200, 403])
  t.strictSame([await status('DELETE', '', user), await status('DELETE', `/${sessionOf(user)}`, user)], [403, 404])
})
