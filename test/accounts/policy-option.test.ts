import t from 'tap'
import type { Actor } from '../../app.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { beginRequest } from '../helpers/slow-request.ts'
import { openSql } from '../helpers/sql.ts'

const FORBIDDEN = { error: 'You may not do this', code: 'FORBIDDEN' }
const LAST_ADMIN = { error: 'The last admin can be neither deleted nor demoted nor disabled', code: 'LAST_ADMIN' }

const usher = await createUsher(t)

t.test('2 the default policy for users', async (t) => {
  const { inject, createUser, login, admin } = usher
  const user = await createUser({ name: 'User' })
  const other = await createUser({ name: 'Other' })

  const put = (who: LoggedIn, whose: { id: string, email: string }, more: object = {}) =>
    inject('PUT', `/api/users/${whose.id}`, {
      headers: who.headers, payload: { name: 'Changed', email: whose.email, ...more },
    })

  t.test('1.6 creating a user without the permission gets 403 (given)', async (t) => {
    const response = await inject(
      'POST', '/api/users', { headers: user.headers, payload: { name: 'A', email: 'a@example.com' } }
    )
    t.equal(response.statusCode, 403)
    t.same(response.json(), FORBIDDEN)
  })

  t.test('2 a user may not replace or delete another user, whether or not it exists', async (t) => {
    for (const id of [other.id, admin.id, 'nobody', user.id.slice(0, -1), `${user.id}%20`]) {
      const payload = { name: 'X', email: 'x@example.com' }
      const replaced = await inject('PUT', `/api/users/${id}`, { headers: user.headers, payload })
      const deleted = await inject('DELETE', `/api/users/${id}`, { headers: user.headers })
      t.same(
        [replaced.statusCode, replaced.json(), deleted.statusCode, deleted.json()], [403, FORBIDDEN, 403, FORBIDDEN], id
      )
    }
  })

  t.test('2 a user may replace their own record, keeping their role', async (t) => {
    t.equal((await put(user, user)).json().name, 'Changed')
    t.equal((await put(user, user, { role: 'user' })).statusCode, 200)
    t.equal((await put(user, { ...user, id: user.id.toUpperCase() })).json().id, user.id)
    t.equal((await inject('GET', '/api/protected', { headers: user.headers })).statusCode, 200, 'the session goes on')
  })

  t.test('2 only an admin may grant or change a role: 403', async (t) => {
    for (const role of ['admin', 'king', '', null, 1, ['user'], {}]) {
      const response = await put(user, user, { role })
      t.same([response.statusCode, response.json()], [403, FORBIDDEN], JSON.stringify(role))
    }
    t.equal((await inject('GET', `/api/users/${user.id}`)).json().role, 'user')
  })

  t.test('2 an admin may do everything', async (t) => {
    const email = 'everything@example.com'
    const { id } = (await inject(
      'POST', '/api/users', { headers: admin.headers, payload: { name: 'E', email, role: 'admin' } }
    )).json()
    t.equal((await put(admin, { id, email }, { role: 'user' })).json().role, 'user')
    t.equal((await put(admin, { id, email }, { role: 'admin' })).json().role, 'admin')
    t.equal((await put(admin, { id, email })).json().role, 'admin', 'no role keeps it')
    t.equal((await inject('DELETE', `/api/users/${id}`, { headers: admin.headers })).statusCode, 204)
  })

  t.test('2 a user may delete their own record', async (t) => {
    const leaver = await createUser()
    t.equal((await inject('DELETE', `/api/users/${leaver.id}`, { headers: leaver.headers })).statusCode, 204)
    t.equal((await inject('GET', '/api/protected', { headers: leaver.headers })).statusCode, 401)
  })

  t.test('2 the last admin cannot be deleted or demoted: 409', async (t) => {
    const deleted = await inject('DELETE', `/api/users/${admin.id.toUpperCase()}`, { headers: admin.headers })
    const demoted = await put(admin, admin, { role: 'user' })
    t.same([deleted.statusCode, deleted.json(), demoted.statusCode, demoted.json()], [409, LAST_ADMIN, 409, LAST_ADMIN])
    t.same((await inject('GET', '/api/users?role=admin')).json().map(({ id }: { id: string }) => id), [admin.id])
    t.equal((await put(admin, admin, { role: 'admin' })).statusCode, 200)
  })

  t.test('4 a demotion ends the user\'s sessions, because their tokens contain the role admin', async (t) => {
    const demoted = await createUser({ role: 'admin' })
    t.equal((await put(admin, demoted, { role: 'user' })).json().role, 'user')
    t.equal((await inject('GET', '/api/protected', { headers: demoted.headers })).statusCode, 401)
    const again = await login(demoted)
    t.equal((await inject('POST', '/api/users', { headers: again.headers, payload: {} })).statusCode, 403)
  })
})

nightly('2 if two admins delete or demote each other at once, one remains', async (t) => {
  const { inject, login, admin } = await createUsher(t)
  const demote = (who: LoggedIn, whose: LoggedIn) =>
    inject('PUT', `/api/users/${whose.id}`, {
      headers: who.headers, payload: { name: 'D', email: whose.email, role: 'user' },
    })
  const remove = (who: LoggedIn, whose: LoggedIn) =>
    inject('DELETE', `/api/users/${whose.id}`, { headers: who.headers })

  let first = admin
  let round = 0
  for (const [one, two] of [
    [demote, demote], [remove, remove], [demote, remove], [remove, demote], [demote, demote], [remove, remove],
  ] as const) {
    const payload = {
      name: 'Second', email: `${round++}@example.com`, password: 'correct horse battery', role: 'admin',
    }
    await inject('POST', '/api/users', { headers: first.headers, payload })
    const second = await login(payload)
    const statuses = (await Promise.all([one(first, second), two(second, first)])).map(({ statusCode }) => statusCode)
    const refusals = statuses.filter((status) => status >= 400)
    // Either the admin was the last one, or the session had ended before the request was handled.
    t.ok(refusals.length === 1 && [401, 409].includes(refusals[0]!), statuses.join())
    const [left, ...more] = (await inject('GET', '/api/users?role=admin')).json()
    t.same(more, [])
    first = await login(left.id === first.id ? first : second)
  }
})

nightly('2 a login that races with a demotion gets no token with the role admin', async (t) => {
  const user = await usher.createUser({ role: 'admin' })
  const sql = openSql(t, usher)
  const [racing] = await sql.begin(async (transaction) => {
    await transaction`update users set role = 'user' where id = ${user.id}`
    const login = usher.inject('POST', '/api/auth/login', { payload: { email: user.email, password: user.password } })
    // Waits until the login is blocked by the lock on the row.
    const waits = () =>
      sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%sessions%' and query like ${`%${usher.options.schema}%`}`
    while ((await waits()).length === 0);
    return [login]
  })
  const { token, user: { role } } = (await racing).json()
  t.equal(role, 'user')
  t.equal(JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString()).role, 'user')
})

nightly('2 a login that races with a deletion fails', async (t) => {
  const user = await usher.createUser()
  const sql = openSql(t, usher)
  const [racing] = await sql.begin(async (transaction) => {
    await transaction`delete from users where id = ${user.id}`
    const login = usher.inject('POST', '/api/auth/login', { payload: { email: user.email, password: user.password } })
    const waits = () =>
      sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%sessions%' and query like ${`%${usher.options.schema}%`}`
    while ((await waits()).length === 0);
    return [login]
  })
  t.same([(await racing).statusCode, (await racing).json().code], [401, 'INVALID_CREDENTIALS'])
})

t.test('2 a host may pass its own policy', async (t) => {
  const { inject, createUser, admin } = await createUsher(t, {
    ...usher.options,
    policy: { 'users:create': () => true, 'users:replace': () => true, 'users:delete': ({ role }) => role === 'admin' },
  })
  const user = await createUser()
  const create = async (more: object) => (await inject('POST', '/api/users', {
    headers: user.headers, payload: { name: 'New', email: `${Math.random()}@example.com`, ...more },
  })).statusCode
  t.same(
    [await create({}), await create({ role: 'user' }), await create({ role: 'admin' })],
    [201, 201, 403],
    'a role is still the admin\'s to grant'
  )

  const replace = async (whose: LoggedIn, more: object) => (await inject('PUT', `/api/users/${whose.id}`, {
    headers: user.headers, payload: { name: 'New', email: whose.email, ...more },
  })).statusCode
  t.same(
    [await replace(admin, {}), await replace(admin, { role: 'user' }), await replace(user, { role: 'user' })],
    [200, 403, 200],
    'and to take'
  )
  t.equal((await inject('DELETE', `/api/users/${user.id}`, { headers: user.headers })).statusCode, 403)
})

nightly('12.2 a rule of the host is asked before the body arrives and when the change is made', async (t) => {
  const asked = new Map<string, number>()
  let isClosed = false
  const rule = (action: string) => (actor: Actor | null) => {
    asked.set(action, (asked.get(action) ?? 0) + 1)
    return actor !== null && !isClosed
  }
  const actions = ['users:create', 'users:replace', 'users:grant-role', 'users:read', 'users:read-email']
  const policy = Object.fromEntries(actions.map((action) => [action, rule(action)]))
  const usher = await createUsher(t, { policy })
  const { inject, admin: { headers, ...admin } } = usher
  const path = `/api/users/${admin.id}`
  const isAsked = async (expected: Record<string, number>, status: number, ...request: Parameters<typeof inject>) => {
    asked.clear()
    t.equal((await inject(...request)).statusCode, status, request.slice(0, 2).join(' '))
    t.strictSame(Object.fromEntries(asked), expected, request.slice(0, 2).join(' '))
  }
  const payload = { name: 'A', email: 'a@example.com' }
  await isAsked({ 'users:read': 1, 'users:read-email': 1 }, 200, 'GET', path, { headers })
  await isAsked({ 'users:create': 2, 'users:read-email': 3 }, 201, 'POST', '/api/users', { headers, payload })
  await isAsked({ 'users:replace': 2, 'users:read-email': 1 }, 200, 'PATCH', path, { headers, payload: { name: 'B' } })
  const replacement = { name: 'C', email: admin.email }
  await isAsked({ 'users:replace': 2, 'users:read-email': 2 }, 200, 'PUT', path, { headers, payload: replacement })

  const state = async () => (await openSql(t, usher)`select id, name from users order by id`).join()
  const before = await state()
  const slow = [['POST', '/api/users', { ...payload, email: 'b@example.com' }], ['PATCH', path, { name: 'D' }]] as const
  for (const [method, where, body] of slow) {
    isClosed = false
    const request = await beginRequest(t, usher, method, where, headers, body)
    isClosed = true
    request.finish()
    t.match(await request.answer, /^HTTP\/1\.1 403 [^]*"FORBIDDEN"/, `${method}: the rule has changed meanwhile`)
  }
  t.equal(await state(), before)
})
