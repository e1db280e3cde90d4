import { decodeJwt } from 'jose'
import t from 'tap'
import { createUsher, sharedUsher, type LoggedIn } from '../helpers/app.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const ENDED = { error: 'The session has ended: log in again', code: 'INVALID_SESSION' }
const CLEARED =
  'usher_session=; Max-Age=0; Path=/api/auth; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Lax'

const idOf = ({ cookie }: { cookie: string }) => cookie.slice('usher_session='.length).split('.')[0]!
const seconds = (claims: { exp?: number, iat?: number }) => claims.exp! - claims.iat!

const usher = await sharedUsher()

t.test('4.2 POST /api/auth/refresh', async (t) => {
  const { inject, login, createUser, admin, options: { schema } } = usher
  const sql = openSql(t, usher)
  const user = await createUser({ name: 'Ada' })
  const works = async (headers: LoggedIn['headers']) =>
    (await inject('GET', '/api/protected', { headers })).statusCode === 200
  const send = (headers: Record<string, string | string[]>) => inject('POST', '/api/auth/refresh', { headers })

  // Refreshes a session and returns it with the new cookie and token. Throws if the response is not 200.
  async function refresh ({ cookie }: { cookie: string }, headers: object = {}) {
    const response = await send({ ...headers, cookie })
    if (response.statusCode !== 200) throw new Error(`refresh: ${response.statusCode} ${response.body}`)
    const [{ name, value }] = response.cookies as [{ name: string, value: string }]
    const { token } = response.json()
    return { response, token, cookie: `${name}=${value}`, headers: { authorization: `Bearer ${token}` } }
  }

  const later = (session: { cookie: string }, time = '11 seconds') =>
    sql`update sessions set rotated_at = array(select at - ${time}::interval from unnest(rotated_at) as at) where id = ${idOf(session)}`
  const lives = async (session: { cookie: string }) =>
    (await sql`select 1 from sessions where id = ${idOf(session)}`).length === 1

  t.test('4.2 a refresh returns 200 { token }, like a login, and a rotated cookie', async (t) => {
    const session = await login(user)
    const { response, cookie, token, headers } = await refresh(session)
    const { token: _, user: { createdAt, updatedAt, ...rest }, ...more } = response.json()
    t.strictSame(more, { tokenType: 'Bearer', expiresIn: 900 })
    t.strictSame(rest, {
      id: user.id, name: 'Ada', email: user.email, emailVerified: false, role: 'user', kind: 'person', disabled: false,
    })
    t.not(cookie, session.cookie)
    t.match(
      response.headers['set-cookie'],
      /^usher_session=[\w.-]+; Max-Age=\d+; Path=\/api\/auth; Expires=[^;]+; HttpOnly; SameSite=Lax$/
    )
    t.equal(response.headers['cache-control'], 'no-store')
    t.equal(decodeJwt(token).sid, decodeJwt(session.token).sid, 'the session is the same')
    t.ok(await works(headers))
    t.ok(await works(session.headers), 'the token of before lives on')
  })

  t.test('4.2 each refresh updates the time, address and user agent of the session, and extends it', async (t) => {
    let session: { cookie: string } = await login(user)
    const cookies = new Set([session.cookie])
    await sql`update sessions set last_used_at = now() - interval '1 day', expires_at = now() + interval '1 day' where id = ${idOf(session)}`
    for (let count = 0; count < 40; count++) {
      cookies.add((session = await refresh(session, { 'user-agent': 'Another/2' })).cookie)
    }
    t.equal(cookies.size, 41)
    t.strictSame(await sql`
      select address, user_agent, rotations, cardinality(rotated_at) as remembered, now() - last_used_at < '1 minute' as used,
        expires_at - now() between '29 days 23 hours' and '30 days' as later
      from sessions where id = ${idOf(session)}`.then(([row]) => row), {
      address: '127.0.0.1', user_agent: 'Another/2', rotations: 40, remembered: 32, used: true, later: true,
    })
  })

  t.test('4.2 a refresh reads the current role', async (t) => {
    const session = await login(await createUser())
    // Not by a request, which would end the session.
    await sql`update users set role = 'admin', name = 'Risen' where id = ${decodeJwt(session.token).sub!}`
    const { token, response } = await refresh(session)
    t.equal(decodeJwt(token).role, 'admin')
    t.match(response.json().user, { name: 'Risen', role: 'admin' })
  })

  t.test('4.2 a missing or invalid cookie gets 401 and is cleared', async (t) => {
    const { cookie } = await login(user)
    const other = await login(admin)
    const [name, secret, rotations, signature] = cookie.split('.')
    const bad: Record<string, string | undefined> = {
      'no cookie': undefined,
      'another cookie': 'other=1',
      empty: 'usher_session=',
      'no value': 'usher_session',
      rubbish: ';;=;%%%',
      short: 'usher_session=x',
      'very long': `usher_session=${'x'.repeat(12_000)}`,
      'very long of digits': `usher_session=${idOf({ cookie })}.${secret}.${'9'.repeat(8000)}.${signature}`,
      binary: 'usher_session=\u00ff\u00fe\u0080%00%ED%A0%80',
      'no session id': cookie.replace(idOf({ cookie }), 'x'.repeat(36)),
      'an unknown session': cookie.replace(idOf({ cookie }), '018f0000-0000-7000-8000-000000000000'),
      "another user's session": cookie.replace(idOf({ cookie }), idOf(other)),
      'another secret': [name, 'x'.repeat(43), rotations, signature].join('.'),
      'another count': [name, secret, '1', signature].join('.'),
      'a negative count': [name, secret, '-1', signature].join('.'),
      'a count written otherwise': [name, secret, '00', signature].join('.'),
      'another signature': [name, secret, rotations, 'x'.repeat(43)].join('.'),
      'the end of another': [name, secret, ...other.cookie.split('.').slice(2)].join('.'),
      'cut off': cookie.slice(0, -1),
      'with a tail': `${cookie}.x`,
      'in capitals': cookie.replace(idOf({ cookie }), (id) => id.toUpperCase()),
      'two of the name': `${cookie}; ${other.cookie}`,
      'two of the name, one of them empty': `usher_session=; ${cookie}`,
      'the token': `usher_session=${user.token}`,
    }
    for (const [what, value] of Object.entries(bad)) {
      const response = await send(value === undefined ? {} : { cookie: value })
      t.strictSame([response.statusCode, response.json()], [401, ENDED], what)
      t.equal(response.headers['set-cookie'], CLEARED, what)
      t.equal(response.headers['www-authenticate'], 'Bearer', what)
    }
    t.equal((await send(user.headers)).statusCode, 401, 'a token is no cookie')
    await refresh({ cookie: `a=b; ${cookie}; c=d` })
    t.ok(await lives(other), 'nothing of this has ended a session')
  })

  t.test('4.2 methods other than POST get 405', async (t) => {
    const response = await inject('GET', '/api/auth/refresh', { headers: { cookie: user.cookie } })
    t.strictSame([response.statusCode, response.headers.allow], [405, 'POST'])
  })

  t.test('4 a request from another origin gets 403: nothing is rotated, and the cookie is not cleared', async (t) => {
    const session = await login(user)
    for (const origin of [
      'https://evil.example', 'http://localhost:81', 'https://localhost:80', 'null', 'http://sub.localhost:80',
    ]) {
      const response = await send({ cookie: session.cookie, origin, host: 'localhost:80' })
      t.strictSame(
        [response.statusCode, response.json().code, response.headers['set-cookie']],
        [403, 'ORIGIN_NOT_ALLOWED', undefined],
        origin
      )
      const without = await send({ origin, host: 'localhost:80' })
      t.strictSame([without.statusCode, without.json(), without.headers['set-cookie']], [401, ENDED, undefined], origin)
    }
    t.strictSame(
      await sql`select rotations from sessions where id = ${idOf(session)}`.then(([row]) => row), { rotations: 0 }
    )
    await refresh(session, { origin: 'http://localhost:80', host: 'localhost:80' })
  })

  t.test('4 after logout, deletion, demotion or manual deletion, a refresh gets 401 and the cookie is cleared', async (t) => {
    const ends: Record<string, (session: LoggedIn) => PromiseLike<unknown>> = {
      logout: ({ headers }) => inject('POST', '/api/auth/logout', { headers }),
      'logout by the cookie': ({ cookie }) => inject('POST', '/api/auth/logout', { headers: { cookie } }),
      'user deleted': ({ id }) => inject('DELETE', `/api/users/${id}`, { headers: admin.headers }),
      'user demoted': ({ id, email }) =>
        inject('PUT', `/api/users/${id}`, { headers: admin.headers, payload: { name: 'N', email, role: 'user' } }),
      'by hand': ({ id }) => sql`delete from sessions where user_id = ${id}`,
      expired: ({ id }) => sql`update sessions set expires_at = now() where user_id = ${id}`,
    }
    for (const [how, end] of Object.entries(ends)) {
      const session = await createUser({ role: 'admin' })
      await end(session)
      const response = await send({ cookie: session.cookie })
      t.strictSame([response.statusCode, response.json(), response.headers['set-cookie']], [401, ENDED, CLEARED], how)
    }
  })

  t.test('4 a session that this node knows has ended is not refreshed, even if the database still has it', async (t) => {
    const user = await usher.createUser()
    // This simulates a failover to a replica that lags behind.
    await sql`create table lagging as select * from sessions where user_id = ${user.id}`
    await usher.inject('POST', '/api/auth/logout', { headers: user.headers })
    await sql`insert into sessions select * from lagging`
    const response = await usher.inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie } })
    t.same([response.statusCode, response.json().code], [401, 'INVALID_SESSION'])
    t.same(await sql`select rotations from sessions where user_id = ${user.id}`, [{ rotations: 0 }])
  })

  t.test('4 two refreshes at once both succeed and get the same cookie', async (t) => {
    const session = await login(user)
    const all = await Promise.all(Array.from({ length: 10 }, () => refresh(session)))
    t.equal(new Set(all.map(({ cookie }) => cookie)).size, 1)
    for (const { headers } of all) t.ok(await works(headers))
    t.strictSame(
      await sql`select rotations from sessions where id = ${idOf(session)}`.then(([row]) => row), { rotations: 1 }
    )
    await refresh(all[0]!)
  })

  t.test('4 in the grace period an old cookie gets the current one, so a lost response does no harm', async (t) => {
    const first = await login(user)
    const second = await refresh(first)
    t.equal((await refresh(first)).cookie, second.cookie)
    const third = await refresh(second)
    for (const old of [first, second]) t.equal((await refresh(old)).cookie, third.cookie)
    await later(first, '5 seconds')
    t.equal((await refresh(first)).cookie, third.cookie)
  })

  t.test('4 reusing an old cookie after the grace period ends the session', async (t) => {
    for (const rotations of [1, 2, 40]) {
      const first = await login(user)
      let last: Awaited<ReturnType<typeof refresh>> | undefined
      for (let count = 0; count < rotations; count++) last = await refresh(last ?? first)
      await later(first)
      const response = await send({ cookie: first.cookie })
      t.strictSame(
        [response.statusCode, response.json(), response.headers['set-cookie']], [401, ENDED, CLEARED], `${rotations}`
      )
      t.notOk(await lives(first))
      t.notOk(await works(last!.headers), "the thief's token, or the owner's")
      t.equal((await send({ cookie: last!.cookie })).statusCode, 401)
      t.strictSame([...await sql`select action, actor_id, user_id from audit where session_id = ${idOf(first)} and action <> 'login'`],
        [{ action: 'session.refresh-reuse', actor_id: null, user_id: user.id }])
    }
    t.ok(await works(user.headers), 'other sessions go on')
  })

  t.test('4 the grace period starts when that cookie was replaced, not at the last rotation', async (t) => {
    const first = await login(user)
    const second = await refresh(first)
    await later(first)
    const third = await refresh(second)
    t.equal((await refresh(second)).cookie, third.cookie, 'replaced just now')
    t.equal((await send({ cookie: first.cookie })).statusCode, 401, 'replaced long ago')
    t.notOk(await lives(first))
  })

  t.test('4 a guessed cookie ends no session, even after the grace period', async (t) => {
    const first = await login(user)
    const second = await refresh(first)
    await later(first)
    const [name, , ...rest] = first.cookie.split('.')
    for (const cookie of [[name, 'x'.repeat(43), ...rest].join('.'), `${first.cookie.slice(0, -2)}xx`]) {
      t.equal((await send({ cookie })).statusCode, 401)
    }
    t.ok(await lives(first))
    await refresh(second)
  })

  t.test('4.3 logout with an old cookie ends the session too', async (t) => {
    const first = await login(user)
    const { headers } = await refresh(first)
    await later(first)
    t.equal((await inject('POST', '/api/auth/logout', { headers: { cookie: first.cookie } })).statusCode, 204)
    t.notOk(await works(headers))
  })

  t.test('4 if a refresh races with the end of the session, the session ends and none of its tokens work', async (t) => {
    const ends: Record<string, (session: LoggedIn) => PromiseLike<{ statusCode: number }>> = {
      logout: ({ cookie }) => inject('POST', '/api/auth/logout', { headers: { cookie } }),
      deletion: ({ id }) => inject('DELETE', `/api/users/${id}`, { headers: admin.headers }),
      demotion: ({ id, email }) =>
        inject('PUT', `/api/users/${id}`, { headers: admin.headers, payload: { name: 'N', email, role: 'user' } }),
    }
    for (const [how, end] of Object.entries(ends)) {
      for (let round = 0; round < 4; round++) {
        const session = await createUser({ role: 'admin' })
        const [refreshed, ended] = await Promise.all([send({ cookie: session.cookie }), end(session)])
        t.ok([200, 401].includes(refreshed.statusCode), `${how}: ${refreshed.statusCode}`)
        t.ok(ended.statusCode < 300, `${how}: ${ended.statusCode}`)
        t.notOk(await lives(session))
        t.notOk(await works(session.headers))
        if (refreshed.statusCode === 200) {
          t.notOk(await works({ authorization: `Bearer ${refreshed.json().token}` }), how)
        }
      }
    }
  })

  t.test('4 a refresh handles a session that ends or is rotated while it waits', async (t) => {
    for (const [how, statement, status] of [
      ['ended', 'delete from sessions where id = $1', 401],
      ['rotated', 'update sessions set rotations = 1, rotated_at = array[now()] where id = $1', 200],
    ] as const) {
      const session = await login(user)
      const [held, waited] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const transaction = sql.begin(async (trx) => {
        await trx.unsafe(statement, [idOf(session)])
        held.resolve()
        await waited.promise
      })
      await held.promise
      const refreshed = send({ cookie: session.cookie })
      await until('it waits', async () =>
        (await sql`select 1 from pg_locks join pg_stat_activity using (pid) where not granted and query like ${`%"${schema}"."sessions"%`}`).length > 0)
      waited.resolve()
      await transaction
      const { statusCode } = await refreshed
      t.equal(statusCode, status, how)
    }
  })
})

t.test('4 sessions expire when idle too long and after a total time, together with cookie and tokens', async (t) => {
  const { inject, admin, login } = await createUsher(
    t, { ...usher.options, sessionIdleSeconds: 600, sessionSeconds: 1000 }
  )
  const sql = openSql(t, usher)
  const send = (cookie: string) => inject('POST', '/api/auth/refresh', { headers: { cookie } })
  const near = (a: number, b: number) => Math.abs(a - b) <= 2
  const left = ({ cookies }: { cookies: object[] }) =>
    ((cookies[0] as { expires: Date }).expires.getTime() - Date.now()) / 1000

  const opened = await inject('POST', '/api/auth/login', { payload: { email: admin.email, password: admin.password } })
  t.ok(near(left(opened), 600))
  t.ok(near(opened.json().expiresIn, 600))
  t.ok(near(seconds(decodeJwt(opened.json().token)), 600))

  const session = await login(admin)
  const age = (time: string) =>
    sql`update sessions set created_at = created_at - ${time}::interval, expires_at = expires_at - ${time}::interval where id = ${idOf(session)}`
  await age('500 seconds')
  const refreshed = await send(session.cookie)
  t.ok(near(left(refreshed), 500), 'the 1000 in all are nearer than the 600 idle')
  t.ok(near(refreshed.json().expiresIn, 500))
  t.ok(near(seconds(decodeJwt(refreshed.json().token)), 500))

  await age('501 seconds')
  const { name, value } = refreshed.cookies[0] as unknown as { name: string, value: string }
  const expired = await send(`${name}=${value}`)
  t.strictSame([expired.statusCode, expired.json()], [401, ENDED])
})
