import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import t from 'tap'
import type { UsherOptions } from '../../app.ts'
import { createUsher, sharedUsher, type LoggedIn } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql, untilBlocked } from '../helpers/sql.ts'

const FORBIDDEN = { error: 'You may not do this', code: 'FORBIDDEN' }
const NO_USER = { error: 'User not found', code: 'USER_NOT_FOUND' }
const NO_SESSION = { error: 'Session not found', code: 'SESSION_NOT_FOUND' }

const sessionOf = ({ token }: { token: string }) => decodeJwt(token).sid as string

const usher = await sharedUsher()
const { inject, login, createUser, admin } = usher
const sql = openSql(t, usher)

const works = async ({ headers }: LoggedIn) => (await inject('GET', '/api/protected', { headers })).statusCode === 200
const list = (by: LoggedIn, id: string) => inject('GET', `/api/users/${id}/sessions`, { headers: by.headers })
const end = (by: LoggedIn, id: string, path = '') =>
  inject('DELETE', `/api/users/${id}/sessions${path}`, { headers: by.headers })
const log = async (userId: string) =>
  [...await sql`select action, actor_id, session_id from audit where user_id = ${userId} and action = 'session.end' order by session_id`]
const entry = (by: LoggedIn) =>
  (session: LoggedIn) => ({ action: 'session.end', actor_id: by.id, session_id: sessionOf(session) })

t.test('11.4 GET /api/users/{id}/sessions returns 200 with the sessions of the user, newest first', async (t) => {
  const user = await createUser()
  const second = await login(user)
  const own = await list(second, user.id)
  t.equal(own.statusCode, 200)
  t.equal(own.headers['cache-control'], 'private, no-cache')
  t.strictSame(
    own.json(),
    (await inject('GET', '/api/auth/sessions', { headers: second.headers })).json(),
    'what the user gets otherwise'
  )
  t.strictSame(
    own.json().map(({ id, current }: { id: string, current: boolean }) => [id, current]),
    [[sessionOf(second), true], [sessionOf(user), false]]
  )
  const others = own.json().map((session: object) => ({ ...session, current: false }))
  t.strictSame((await list(admin, user.id)).json(), others, 'an admin sees the same, and none is the current one')
  t.strictSame((await list(admin, user.id.toUpperCase())).json(), others)
  t.ok((await list(admin, admin.id)).json()
    .some(({ id, current }: { id: string, current: boolean }) => current && id === sessionOf(admin)))
  t.equal((await inject('HEAD', `/api/users/${user.id}/sessions`, { headers: user.headers })).statusCode, 200)

  await sql`update sessions set expires_at = now() where id = ${sessionOf(second)}`
  t.strictSame(
    (await list(admin, user.id)).json().map(({ id }: { id: string }) => id), [sessionOf(user)], 'without expired ones'
  )
  const { id } = (await inject(
    'POST', '/api/users', { headers: admin.headers, payload: { name: 'New', email: `${randomUUID()}@example.com` } }
  )).json()
  t.strictSame((await list(admin, id)).json(), [], 'of a user who has not logged in')
})

t.test('11.4 DELETE /api/users/{id}/sessions/{sessionId} returns 204 and ends only that session', async (t) => {
  const user = await createUser()
  const [one, two, three] = [await login(user), await login(user), await login(user)]
  const response = await end(user, user.id, `/${sessionOf(one)}`)
  t.strictSame([response.statusCode, response.body], [204, ''])
  t.equal((await end(admin, user.id.toUpperCase(), `/${sessionOf(two).toUpperCase()}`)).statusCode, 204)
  t.strictSame(await Promise.all([one, two, three, user].map(works)), [false, false, true, true])
  for (const { cookie } of [one, two]) {
    t.equal((await inject('POST', '/api/auth/refresh', { headers: { cookie } })).statusCode, 401)
  }
  t.strictSame((await end(user, user.id, `/${sessionOf(one)}`)).json(), NO_SESSION, 'a second time')
  t.equal((await end(three, user.id, `/${sessionOf(three)}`)).statusCode, 204, 'the current one')
  t.notOk(await works(three))
  t.strictSame(await log(user.id), [entry(user)(one), entry(admin)(two), entry(user)(three)])
})

t.test('11.4 DELETE /api/users/{id}/sessions returns 204 and ends all sessions of the user', async (t) => {
  const [user, bystander] = [await createUser(), await createUser()]
  const before = [user, await login(user), await login(user)]
  const response = await end(admin, user.id)
  t.strictSame([response.statusCode, response.body], [204, ''])
  t.strictSame(await Promise.all(before.map(works)), [false, false, false])
  for (const { cookie } of before) {
    t.equal((await inject('POST', '/api/auth/refresh', { headers: { cookie } })).statusCode, 401)
  }
  t.equal((await end(admin, user.id)).statusCode, 204, 'with none')
  const after = [await login(user), await login(user)]
  t.equal((await end(after[0]!, user.id)).statusCode, 204)
  t.strictSame(await Promise.all(after.map(works)), [false, false], 'also the current one')
  t.ok(await works(bystander))
  t.ok(await works(await login(user)), 'the user can log in again')
  t.strictSame(await log(user.id), [...before.map(entry(admin)), ...after.map(entry(user))])
})

t.test('11.4 an unknown user or session, and a session of another user, get 404', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  const expired = await login(user)
  await sql`update sessions set expires_at = now() where id = ${sessionOf(expired)}`
  const unknown = [
    sessionOf(other), sessionOf(admin), sessionOf(expired), randomUUID(), user.id, 'x', '%00', "'", '%F0%9F%98%80',
    `${sessionOf(user)}x`,
  ]
  for (const id of unknown) {
    for (const by of [user, admin]) {
      const response = await end(by, user.id, `/${id}`)
      t.strictSame([response.statusCode, response.json()], [404, NO_SESSION], id)
    }
  }
  for (const id of [randomUUID(), sessionOf(user), 'x', '%00', "'", `${user.id}x`]) {
    for (const response of [await list(admin, id), await end(admin, id), await end(admin, id, `/${sessionOf(user)}`)]) {
      t.strictSame([response.statusCode, response.json()], [404, NO_USER], id)
    }
  }
  t.equal((await end(admin, user.id, `/${'x'.repeat(300)}`)).statusCode, 404)
  t.ok(await works(other) && await works(user) && await works(admin))
  t.strictSame(await log(user.id), [])
})

t.test('1.5 1.6 these routes are for the user and admins, and a cookie does not authenticate them', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  const routes = [['GET', ''], ['DELETE', ''], ['DELETE', `/${sessionOf(other)}`]] as const
  for (const [method, path] of routes) {
    const anonymous = await inject(
      method, `/api/users/${other.id}/sessions${path}`, { headers: { cookie: other.cookie } }
    )
    t.strictSame([anonymous.statusCode, anonymous.headers['www-authenticate']], [401, 'Bearer'])
    for (const id of [other.id, admin.id, randomUUID(), 'x', `${user.id}%20`]) {
      const response = await inject(method, `/api/users/${id}/sessions${path}`, { headers: user.headers })
      t.strictSame([response.statusCode, response.json()], [403, FORBIDDEN], 'whether or not there is such a user')
    }
  }
  const wrong = await inject('POST', `/api/users/${user.id}/sessions`, { headers: user.headers })
  t.strictSame([wrong.statusCode, wrong.headers.allow], [405, 'DELETE, GET, HEAD'])
  t.equal((await inject(
    'DELETE', `/api/users/${user.id}/sessions`, { headers: { ...other.headers, 'content-type': 'application/json' } }
  )).statusCode, 403)
  t.ok(await works(other))
})

t.test('1.12 if the session of the actor ends before the change is committed, the response is 401 and no session ends', async (t) => {
  const [user, actor] = [await createUser(), await login(admin)]
  const { ending } = await sql.begin(async (transaction) => {
    await transaction`select 1 from sessions where user_id = ${user.id} for update`
    const ending = end(actor, user.id)
    await untilBlocked(sql, usher)
    t.equal((await end(admin, admin.id, `/${sessionOf(actor)}`)).statusCode, 204)
    // The promise is wrapped in an object, so that the transaction does not wait for it.
    return { ending }
  })
  t.strictSame([(await ending).statusCode, (await ending).json().code], [401, 'INVALID_TOKEN'])
  t.ok(await works(user))
  t.strictSame(await log(user.id), [])
})

nightly('2 the policy of a host decides who may list and end sessions, and rules for one\'s own do not apply to those of others', async (t) => {
  const statusesOf = async (policy: UsherOptions['policy']) => {
    const { inject, login } = await createUsher(t, { ...usher.options, policy })
    const [user, other] = [await createUser(), await createUser()]
    const send = async (by: LoggedIn, method: 'GET' | 'DELETE', path: string) =>
      (await inject(method, path, { headers: by.headers })).statusCode
    return [
      await send(user, 'GET', `/api/users/${user.id}/sessions`),
      await send(user, 'GET', `/api/users/${other.id}/sessions`),
      await send(await login(admin), 'GET', `/api/users/${user.id}/sessions`),
      await send(user, 'DELETE', `/api/users/${other.id}/sessions`),
      await send(user, 'DELETE', `/api/users/${user.id}/sessions`),
    ]
  }
  t.strictSame(await statusesOf({ 'sessions:list': () => true }), [200, 403, 200, 403, 204])
  t.strictSame(await statusesOf({ 'sessions:list': ({ role }) => role === 'admin' }), [403, 403, 200, 403, 204])
  t.strictSame(
    await statusesOf({ 'sessions:list-of-another': () => true, 'sessions:end': () => false }), [200, 200, 200, 403, 403]
  )
  t.strictSame(
    await statusesOf({ 'sessions:list-of-another': () => false, 'sessions:end': () => true }), [200, 403, 403, 204, 204]
  )
})
