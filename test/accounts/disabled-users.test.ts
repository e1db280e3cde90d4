import t, { type Test } from 'tap'
import type { UsherOptions } from '../../app.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { createPost, openSocket, post } from '../helpers/graphql.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql, untilBlocked } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const FORBIDDEN = { error: 'You may not do this', code: 'FORBIDDEN' }
const LAST_ADMIN = { error: 'The last admin can be neither deleted nor demoted nor disabled', code: 'LAST_ADMIN' }

const inbox = createMailer()
const usher = await createUsher(t, { mailer: inbox.mailer })
const { inject, login, createUser, admin } = usher
const sql = openSql(t, usher)

const patch = (id: string, payload: object | string, { headers } = admin) =>
  inject('PATCH', `/api/users/${id}`, {
    headers: { ...headers, 'content-type': 'application/json' },
    payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
  })
const read = async (id: string) => (await inject('GET', `/api/users/${id}`)).json()
const enter = ({ email, password }: { email: string, password: string }) =>
  inject('POST', '/api/auth/login', { payload: { email, password } })
const works = async ({ headers }: LoggedIn) => (await inject('GET', '/api/protected', { headers })).statusCode === 200
const refreshes = async ({ cookie }: LoggedIn) =>
  (await inject('POST', '/api/auth/refresh', { headers: { cookie } })).statusCode === 200
const sessionsOf = (id: string) => sql`select id from sessions where user_id = ${id}`
const log = async (id: string) =>
  [...await sql`select action, actor_id from audit where user_id = ${id} and action <> 'user.create' order by id`]

t.test('11.4 PATCH disabled by an admin ends the sessions of the user, and logins fail until the user is enabled', async (t) => {
  const user = await createUser()
  const second = await login(user)
  const response = await patch(user.id, { disabled: true })
  t.equal(response.statusCode, 200)
  t.match(response.json(), { id: user.id, disabled: true, name: 'Somebody' })
  t.strictSame(await read(user.id), response.json(), 'the record is still visible')
  for (const session of [user, second]) {
    const response = await inject('GET', '/api/protected', { headers: session.headers })
    t.strictSame([response.statusCode, response.json().code], [401, 'INVALID_TOKEN'])
    t.notOk(await refreshes(session))
  }
  t.equal((await sessionsOf(user.id)).length, 0)
  t.equal((await enter(user)).statusCode, 401)
  t.equal((await patch(user.id, { disabled: true })).statusCode, 200, 'a second time')

  t.match((await patch(user.id, { disabled: false })).json(), { disabled: false })
  t.strictSame([await works(user), await refreshes(user)], [false, false], 'the former sessions do not come back')
  t.equal((await patch(user.id, { disabled: false })).statusCode, 200)
  t.ok(await works(await login(user)))
  const by = (action: string, { id } = admin) => ({ action, actor_id: id })
  t.strictSame(await log(user.id), [
    by('login', user), by('login', user), by('user.disable'), { action: 'login.failed', actor_id: null },
    by('user.enable'), by('login', user),
  ], 'only real changes are logged')
})

t.test('11.4 the posts of a disabled user stay, and an admin may still create some', async (t) => {
  const user = await createUser()
  const id = await createPost(usher, user, 'Before')
  await patch(user.id, { disabled: true })
  t.match(await post(usher, { query: `{ post(id: "${id}") { title author { id name } } }` }), {
    data: { post: { title: 'Before', author: { id: user.id, name: 'Somebody' } } },
  })
  const mutation =
    `mutation { createPost(input: { title: "After", content: "", authorId: "${user.id}" }) { author { id } } }`
  t.match(await post(usher, { query: mutation }, admin), { data: { createPost: { author: { id: user.id } } } })
  t.match(await post(usher, { query: 'mutation { createPost(input: { title: "Own", content: "" }) { id } }' }, user), {
    errors: [{ extensions: { code: 'INVALID_TOKEN' } }],
  })
})

t.test('11.4 only an admin may disable or enable, and users not even themselves: 403, before 400', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  for (const whose of [user, other, admin]) {
    for (const disabled of [true, false, null, 'true', 1, [], {}]) {
      const response = await patch(whose.id, { name: 'Changed', disabled }, user)
      if (whose === user && disabled === false) {
        t.equal(response.statusCode, 200, 'it changes nothing in the own record')
      } else {
        t.strictSame([response.statusCode, response.json()], [403, FORBIDDEN], JSON.stringify(disabled))
      }
    }
  }
  t.match(await read(user.id), { name: 'Changed', disabled: false })
  t.match(await read(other.id), { name: 'Somebody', disabled: false })
  t.equal((await inject('PATCH', `/api/users/${user.id}`, { payload: { disabled: true } })).statusCode, 401)
})

nightly('2 the policy of a host decides who may disable users, in addition to who may change them', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  const statusesOf = async (policy: UsherOptions['policy']) => {
    const { inject } = await createUsher(t, { ...usher.options, policy })
    const send = async (by: LoggedIn, { id }: LoggedIn, disabled: unknown = false) =>
      (await inject('PATCH', `/api/users/${id}`, { headers: by.headers, payload: { disabled } })).statusCode
    // 400 means that the rule has let the value through.
    return [await send(user, user, 'x'), await send(user, other), await send(admin, user)]
  }
  t.strictSame(await statusesOf({ 'users:disable': () => true }), [400, 403, 200])
  t.strictSame(
    await statusesOf({ 'users:disable': (actor, { ownerId }) => actor.id === ownerId, 'users:replace': () => true }),
    [400, 403, 403]
  )
  t.equal((await inject(
    'PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: await read(user.id) }
  )).statusCode, 200, 'the own record can be sent back')
})

t.test('11.4 a value that is no boolean gets 400, and other requests ignore the member', async (t) => {
  const user = await createUser()
  const before = await read(user.id)
  const cases: [object | string, string[]][] = [
    [{ disabled: null }, ['disabled must not be null']],
    ...['true', '', 0, 1, [], [true], {}, { disabled: true }]
      .map((disabled): [object, string[]] => [{ disabled }, ['disabled must be a boolean']]),
    [{ disabled: 'yes', name: 1, role: null }, [
      'name must be a string', 'role must not be null', 'disabled must be a boolean',
    ]],
    ['{"disabled":true', ['body is not valid JSON']],
    ['{"disabled":tru}', ['body is not valid JSON']],
    ['[{"disabled":true}]', ['body must be an object']],
  ]
  for (const [payload, errors] of cases) {
    const response = await patch(user.id, payload)
    t.strictSame([response.statusCode, response.json()], [400, { errors }], JSON.stringify(payload))
  }
  t.strictSame(await read(user.id), before)
  t.strictSame((await patch(user.id, '{"Disabled":true,"DISABLED":true}')).json(), before)
  for (const id of ['0190a5b4-7c3e-7d11-8abc-0123456789ab', 'x']) {
    t.equal((await patch(id, { disabled: true })).json().code, 'USER_NOT_FOUND')
  }

  const put = (payload: object) =>
    inject('PUT', `/api/users/${user.id}`, { headers: user.headers, payload: { ...before, ...payload } })
  for (const disabled of [true, false, 'x', null]) t.match((await put({ disabled })).json(), { disabled: false })
  const payload = { name: 'New', email: 'new-and-disabled@example.com', disabled: true }
  t.match((await inject('POST', '/api/users', { headers: admin.headers, payload })).json(), { disabled: false })
  await patch(user.id, { disabled: true })
  t.match((await inject(
    'PUT', `/api/users/${user.id}`, { headers: admin.headers, payload: { ...before, disabled: false, name: 'Renamed' } }
  )).json(), { name: 'Renamed', disabled: true })
})

t.test('11.4 a PATCH of several members changes all of them or none', async (t) => {
  const [user, taken] = [await createUser({ role: 'admin' }), await createUser()]
  const before = await read(user.id)
  const failed = await patch(user.id, { name: 'New', email: taken.email, role: 'user', disabled: true })
  t.strictSame([failed.statusCode, failed.json().code], [409, 'EMAIL_TAKEN'])
  t.strictSame([await read(user.id), await works(user)], [before, true])
  const email = `new-${user.email}`
  t.match((await patch(user.id, { name: 'New', email, role: 'user', disabled: true })).json(), {
    name: 'New', email, role: 'user', disabled: true,
  })
  t.notOk(await works(user))
  t.match((await patch(user.id, { role: 'admin', disabled: false })).json(), {
    name: 'New', email, role: 'admin', disabled: false,
  })
  t.equal((await enter({ ...user, email })).statusCode, 200)
  const actions = (await log(user.id)).map(({ action }) => action).sort()
  t.strictSame(
    actions,
    ['login', 'login', 'user.disable', 'user.email-change', 'user.enable', 'user.role-change', 'user.role-change']
  )
})

t.test('11.4 a login of a disabled user fails like one with a wrong password', async (t) => {
  const [disabled, enabled] = [await createUser(), await createUser()]
  await patch(disabled.id, { disabled: true })
  const right = await enter(disabled)
  const { headers: { date, 'x-request-id': id, ...expected }, ...wrong } =
    await enter({ ...enabled, password: 'a wrong one' })
  const { headers: { date: _, 'x-request-id': __, ...headers } } = right
  t.strictSame([right.statusCode, right.body, headers], [wrong.statusCode, wrong.body, expected])
  t.equal((await enter({ ...disabled, password: 'a wrong one' })).body, right.body)
  const entries =
    await sql`select action, actor_id, session_id, address, user_agent from audit where user_id = any(${[disabled.id, enabled.id]}) and action = 'login.failed'`
  t.strictSame([...entries], Array(3).fill({
    action: 'login.failed', actor_id: null, session_id: null, address: '127.0.0.1', user_agent: 'lightMyRequest',
  }))
  const failures =
    await sql`select count from login_failures where key in (${sql`sha256(${disabled.email}::bytea)`}, ${sql`sha256(${enabled.email}::bytea)`}) order by count`
  t.strictSame(failures.map(({ count }) => count), [1, 2], 'each attempt counts, also with the right password')
  const [{ networks }] = await sql<[
    { networks: number }
  ]>`select count(*)::int as networks from recognised_networks where user_id = ${disabled.id}`
  t.equal(networks, 1, 'the network of the login before')
})

t.test('11.4 every node rejects the sessions, and closes sockets and streams', async (t) => {
  const there = await createUsher(t, usher.options)
  const user = await createUser()
  const socket = await (await openSocket(t, there)).init({ authorization: `Bearer ${user.token}` })
  socket.start('posts', 'subscription { postCreated { title } }')
  await socket.settle()
  t.equal((await there.inject('GET', '/api/protected', { headers: user.headers })).statusCode, 200)

  t.equal((await patch(user.id, { disabled: true })).statusCode, 200)
  t.equal(await socket.closed, 4403)
  t.equal((await there.inject('GET', '/api/protected', { headers: user.headers })).statusCode, 401)
  t.equal((await there.inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie } })).statusCode, 401)
  t.equal((await there.inject('POST', '/api/auth/login', { payload: user })).statusCode, 401)
})

nightly('11.4 no session remains, whatever order logins, refreshes and disabling have', async (t) => {
  const user = await createUser()
  for (let round = 0; round < 50; round++) {
    const session = await login(user)
    const racing = [enter(user), enter(user)]
    // Passwords are checked one after the other, so the second login is then about to open its session.
    if (round % 2 === 1) await racing[0]
    const [disabled, refreshed, ...entered] =
      await Promise.all([patch(user.id, { disabled: true }), refreshes(session), ...racing])
    t.equal(disabled.statusCode, 200)
    t.equal((await sessionsOf(user.id)).length, 0, `round ${round}, refreshed: ${refreshed}`)
    for (const { statusCode, body } of entered) {
      if (statusCode === 200) {
        t.notOk(await works({ ...user, headers: { authorization: `Bearer ${JSON.parse(body).token}` } }))
      } else {
        t.equal(statusCode, 401)
      }
    }
    t.notOk(await refreshes(session))
    await patch(user.id, { disabled: false })
  }
})

t.test('11.4 a login whose password was checked before the user was disabled fails like any other', async (t) => {
  const user = await createUser()
  const { entering } = await sql.begin(async (transaction) => {
    await transaction`update users set disabled = true where id = ${user.id}`
    const entering = enter(user)
    await untilBlocked(sql, usher)
    return { entering }
  })
  t.strictSame([(await entering).statusCode, (await entering).json().code], [401, 'INVALID_CREDENTIALS'])
  t.strictSame((await log(user.id)).map(({ action }) => action), ['login', 'login.failed'])
  t.strictSame(
    (await sql`select count from login_failures where key = sha256(${user.email}::bytea)`).map(({ count }) => count),
    [1]
  )
})

t.test('11.4 disabling waits for a login that is about to commit, and ends its session', async (t) => {
  const user = await createUser()
  const { disabling } = await sql.begin(async (transaction) => {
    await transaction`select 1 from users where id = ${user.id} for share`
    const disabling = patch(user.id, { disabled: true })
    await untilBlocked(sql, usher)
    await transaction`
      insert into sessions (id, user_id, secret_hash, rotation_key, amr, auth_time, address, user_agent, expires_at)
      select gen_random_uuid(), user_id, sha256('late'), '', amr, auth_time, '', '', expires_at from sessions where user_id = ${user.id}`
    return { disabling }
  })
  t.equal((await disabling).statusCode, 200)
  t.equal((await sessionsOf(user.id)).length, 0)
})

t.test('1.12 if the session of the admin ends before the change is committed, the response is 401 and nothing changes', async (t) => {
  const [user, actor] = [await createUser(), await login(admin)]
  const { disabling } = await sql.begin(async (transaction) => {
    await transaction`select 1 from sessions where user_id = ${user.id} for update`
    const disabling = patch(user.id, { disabled: true }, actor)
    await untilBlocked(sql, usher)
    t.equal((await inject('POST', '/api/auth/logout', { headers: actor.headers })).statusCode, 204)
    return { disabling }
  })
  t.strictSame([(await disabling).statusCode, (await disabling).json().code], [401, 'INVALID_TOKEN'])
  t.strictSame([(await read(user.id)).disabled, await works(user)], [false, true])
  t.strictSame((await log(user.id)).map(({ action }) => action), ['login'])
})

t.test('11.4 a disabled user gets no link to set a password, and links that were sent before are revoked', async (t) => {
  const request = (email: string) => inject('POST', '/api/auth/password-reset', { payload: { email } })
  const confirm = (token: string) =>
    inject('POST', '/api/auth/password-reset/confirm', { payload: { token, password: 'a password of tomorrow' } })
  const requests = async (id: string) =>
    (await log(id)).filter(({ action }) => action === 'password.reset-request').length
  const user = await createUser()
  await request(user.email)
  const token = await inbox.token(user.email)
  await patch(user.id, { disabled: true })
  t.strictSame((await confirm(token)).json(), { errors: ['token is invalid or has expired'] })

  const [asked, unknown] = [await request(user.email), await request('nobody@example.com')]
  t.strictSame([asked.statusCode, asked.body], [unknown.statusCode, unknown.body])
  await until('the request is logged', async () => await requests(user.id) === 2)
  t.equal((await sql`select 1 from password_links where user_id = ${user.id}`).length, 0)
  await patch(user.id, { disabled: false })
  t.equal((await confirm(token)).statusCode, 400, 'also after the user is enabled')
  t.equal((await enter(user)).statusCode, 200, 'the password is the same')
  await request(user.email)
  t.equal(
    (await confirm(await inbox.token(user.email, 3))).statusCode,
    204,
    'nothing was mailed meanwhile but that the user is enabled, and a new link works'
  )
})

t.test('11.4 inviting a disabled user gets 409, and an invitation does not outlive being disabled', async (t) => {
  const { id, email } = (await inject(
    'POST', '/api/users', { headers: admin.headers, payload: { name: 'New', email: 'invited@example.com' } }
  )).json()
  const invite = () => inject('POST', `/api/users/${id}/invitation`, { headers: admin.headers })
  t.equal((await invite()).statusCode, 202)
  const token = await inbox.token(email)
  await patch(id, { disabled: true })
  const refused = await invite()
  t.strictSame([refused.statusCode, refused.json()], [409, { error: 'The user is disabled', code: 'USER_DISABLED' }])
  t.equal((await inject(
    'POST', '/api/auth/password-reset/confirm', { payload: { token, password: 'a password of tomorrow' } }
  )).statusCode, 400)
  await patch(id, { disabled: false })
  t.equal((await invite()).statusCode, 202)
})

t.test('11.4 the last admin who is not disabled can be neither disabled, deleted nor demoted', async (t) => {
  const { patch, remove, admin, createUser } = await createAdmins(t)
  const other = await createUser({ role: 'admin' })
  t.equal((await patch(admin, other, { disabled: true })).statusCode, 200)
  const refused = [
    await patch(admin, admin, { disabled: true }), await patch(admin, admin, { role: 'user' }),
    await patch(admin, admin, { role: 'user', disabled: true }),
    await patch(admin, admin, { role: 'admin', disabled: true, name: 'Off' }), await remove(admin, admin),
  ]
  for (const response of refused) t.strictSame([response.statusCode, response.json()], [409, LAST_ADMIN])
  t.equal((await patch(admin, admin, { disabled: false, name: 'On' })).json().name, 'On', 'the session goes on')
  t.match(
    (await patch(admin, other, { role: 'user' })).json(),
    { role: 'user', disabled: true },
    'one who is disabled can be demoted'
  )
  t.equal((await patch(admin, other, { role: 'admin' })).statusCode, 200)
  t.equal((await remove(admin, other)).statusCode, 204, 'and deleted')

  const third = await createUser({ role: 'admin' })
  t.equal(
    (await patch(admin, admin, { disabled: true })).statusCode,
    200,
    'an admin who is not the last one can disable themselves'
  )
  t.equal((await patch(admin, third, { name: 'X' })).statusCode, 401)
  t.equal((await patch(third, third, { disabled: true })).statusCode, 409)
})

nightly('11.4 if two admins disable, demote or delete each other at once, one who is not disabled remains', async (t) => {
  const { inject, patch, remove, createUser, ...service } = await createAdmins(t)
  const disable = (who: LoggedIn, whose: LoggedIn) => patch(who, whose, { disabled: true })
  const demote = (who: LoggedIn, whose: LoggedIn) => patch(who, whose, { role: 'user' })
  let { admin } = service
  for (const [one, two] of [
    [disable, disable], [disable, remove], [remove, disable], [disable, demote], [demote, disable], [disable, disable],
  ] as const) {
    const second = await createUser({ role: 'admin' })
    const statuses = (await Promise.all([one(admin, second), two(second, admin)])).map(({ statusCode }) => statusCode)
    const refusals = statuses.filter((status) => status >= 400)
    // Either the admin was the last one, or the session had ended before the request was handled.
    t.ok(refusals.length === 1 && [401, 409].includes(refusals[0]!), statuses.join())
    const left = (await inject('GET', '/api/users?role=admin')).json()
      .filter(({ disabled }: { disabled: boolean }) => !disabled)
    t.equal(left.length, 1)
    admin = left[0].id === admin.id ? admin : second
    service.use(admin)
  }
})

/** Creates a service in which an admin is replaced by another one. */
async function createAdmins (t: Test) {
  const own = await createUsher(t)
  let admin = own.admin
  return {
    inject: own.inject,
    admin,
    use: (next: LoggedIn) => { admin = next },
    patch: (who: LoggedIn, whose: LoggedIn, payload: object) =>
      own.inject('PATCH', `/api/users/${whose.id}`, { headers: who.headers, payload }),
    remove: (who: LoggedIn, whose: LoggedIn) =>
      own.inject('DELETE', `/api/users/${whose.id}`, { headers: who.headers }),
    async createUser ({ role }: { role: 'admin' }) {
      const payload = {
        name: 'Another', email: `${Math.random()}@example.com`, password: 'correct horse battery', role,
      }
      await own.inject('POST', '/api/users', { headers: admin.headers, payload })
      return own.login(payload)
    },
  }
}
