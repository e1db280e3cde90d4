import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { audiences } from '../../app.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { createEndDuring, lockTable, type Lock } from '../helpers/end-during.ts'
import { post } from '../helpers/graphql.ts'
import { createMailer } from '../helpers/mail.ts'
import { untilBlocked } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { upload } from '../helpers/uploads.ts'

const { members, owners } = audiences
const usher = await createUsher(t, {
  mailer: createMailer().mailer,
  policy: { 'users:list': members, 'users:read': members, 'posts:read': members, 'uploads:read': members },
})
const { admin, inject, createUser, login } = usher
const { sql, logout, endDuring } = createEndDuring(t, usher)

type Response = Awaited<ReturnType<typeof inject>>

const isRejected = (t: Test, { statusCode, body }: Response, what: string) =>
  t.match([statusCode, body], [401, 'INVALID_TOKEN'], what)
const anAddress = () => `${randomUUID()}@example.com`
const insertUser = (email: string): Lock => (trx) => trx`
  insert into users (id, name, email, role) values (${randomUUID()}, 'Other', ${email}, 'user')`

t.test('1.12 a request that reads for a session that has ended meanwhile gets 401', async (t) => {
  const requests: Record<string, (user: LoggedIn) => Promise<Response>> = {
    'GET /api/protected': ({ headers }) => inject('GET', '/api/protected', { headers }),
    'PATCH {}': ({ id, headers }) => inject('PATCH', `/api/users/${id}`, { headers, payload: {} }),
    'PATCH {} with a tag that does not match': ({ id, headers }) =>
      inject('PATCH', `/api/users/${id}`, { headers: { ...headers, 'if-match': '"0"' }, payload: {} }),
  }
  for (const [what, request] of Object.entries(requests)) {
    const user = await createUser()
    isRejected(t, await endDuring(user, lockTable('users'), () => request(user)), what)
  }
})

t.test('1.12 a rejection of a request whose session has ended meanwhile says nothing but that', async (t) => {
  const { id } = await upload(usher, 'Secret')
  const requests: [method: 'GET' | 'POST', path: string, table: string, headers?: object][] = [
    ['GET', `/api/uploads/${id}`, 'uploads', { 'if-match': '"0"' }],
    ['GET', `/api/uploads/${id}`, 'uploads', { range: 'bytes=100-200' }],
    ['GET', `/api/uploads/${randomUUID()}`, 'uploads'],
    ['GET', `/api/users/${randomUUID()}`, 'users'],
    ['GET', `/api/users/${randomUUID()}/sessions`, 'users'],
    ['POST', `/api/users/${randomUUID()}/invitation`, 'users'],
    ['POST', `/api/users/${admin.id}/invitation`, 'users'],
  ]
  for (const [method, path, table, headers] of requests) {
    const user = await createUser({ role: 'admin' })
    const response =
      await endDuring(user, lockTable(table), () => inject(method, path, { headers: { ...user.headers, ...headers } }))
    isRejected(t, response, `${method} ${path}`)
  }
  const user = await createUser()
  const query = `mutation { deletePost(id: "${randomUUID()}") }`
  const { errors } = await endDuring(user, lockTable('posts'), () => post(usher, { query }, user))
  t.match(errors, [{ extensions: { code: 'INVALID_TOKEN' } }])
})

t.test('1.12 the same holds for a change or a deletion whose user another transaction has changed or deleted', async (t) => {
  const changes: Record<string, (id: string) => Lock> = {
    changed: (id) => (trx) => trx`update users set name = 'Changed' where id = ${id}`,
    deleted: (id) => (trx) => trx`delete from users where id = ${id}`,
  }
  for (const [method, payload] of [['PATCH', { name: 'New' }], ['PATCH', { role: 'user' }], ['DELETE', {}]] as const) {
    for (const [what, change] of Object.entries(changes)) {
      const [actor, { id }] = [await createUser({ role: 'admin' }), await createUser({ role: 'admin' })]
      const { etag } = (await inject('GET', `/api/users/${id}`, { headers: actor.headers })).headers
      const headers = { ...actor.headers, 'if-match': etag as string }
      const response =
        await endDuring(actor, change(id), () => inject(method, `/api/users/${id}`, { headers, payload }))
      isRejected(t, response, `${method} ${JSON.stringify(payload)}, ${what}`)
    }
  }
})

t.test('1.12 the same holds for a request whose key was used for another one', async (t) => {
  const actor = await createUser({ role: 'admin' })
  const key = `"${randomUUID()}"`
  const create = ({ headers }: LoggedIn, more: object) => {
    const payload = { name: 'One', email: anAddress(), ...more }
    return inject('POST', '/api/users', { headers: { ...headers, 'idempotency-key': key }, payload })
  }
  t.equal((await create(actor, {})).statusCode, 201)
  const again = await login(actor)
  const other = { password: 'a long password of mine' }
  isRejected(t, await endDuring(again, lockTable('idempotency_keys'), () => create(again, other)), 'POST /api/users')
})

t.test('1.12 a change of a password whose session ends meanwhile is not noted as a failed one', async (t) => {
  const change = ({ headers }: LoggedIn, currentPassword: string) =>
    inject('PUT', '/api/auth/password', { headers, payload: { currentPassword, password: 'something entirely new' } })
  const user = await createUser()
  const current = await login(user)
  // What the same request in another session does: it changes the password and ends all other sessions.
  const changing: Lock = (trx) => trx`update users set password_hash = 'another' where id = ${user.id}`
  const ending: Lock = (trx) =>
    trx`delete from sessions where user_id = ${user.id} and id <> ${decodeJwt(current.token).sid as string}`
  isRejected(t, await endDuring(user, changing, () => change(user, user.password), ending), 'changed meanwhile')
  const other = await createUser()
  isRejected(t, await endDuring(other, lockTable('users'), () => change(other, 'a wrong password')), 'a wrong password')
  t.same(await sql`select user_id from audit where action = 'password.change-failed'`, [])
})

t.test('1.11 a change whose new address has to be verified is made with the link to it, or not at all', async (t) => {
  const strict = await createUsher(t, { ...usher.options, policy: { 'users:read-email': owners } })
  const user = await createUser()
  const payload = { name: 'Written', email: anAddress() }
  const lock: Lock = (trx) => trx`lock table verification_links in exclusive mode`
  isRejected(t, await endDuring(user, lock, () =>
    strict.inject('PUT', `/api/users/${user.id}`, { headers: user.headers, payload })), 'PUT')
  t.same(await sql`select name from users where id = ${user.id}`, [{ name: 'Somebody' }])
  const { headers } = await login(user)
  t.equal((await strict.inject('PUT', `/api/users/${user.id}`, { headers, payload })).statusCode, 200)
  t.same(await sql`select name, email from users where id = ${user.id}`, [{ name: 'Written', email: user.email }])
  t.same(await sql`select email from verification_links where user_id = ${user.id}`, [{ email: payload.email }])
})

t.test('4 the end of a session does not wait for a change of the address in that session', async (t) => {
  const user = await createUser()
  const email = anAddress()
  const change = () => inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email } })
  let ending: ReturnType<typeof inject> | undefined
  const response = await endDuring(user, insertUser(email), change, async () => {
    ending = inject('DELETE', `/api/users/${user.id}/sessions`, { headers: admin.headers })
    await until('the session has ended', async () =>
      (await inject('GET', '/api/protected', { headers: user.headers })).statusCode === 401)
    await untilBlocked(sql, usher)
  })
  isRejected(t, response, 'the change')
  t.equal((await ending!).statusCode, 204, 'it answers when links of the user are void as well')
})

t.test('2.5 the response to the deletion of a user does not wait for rows that are locked', async (t) => {
  const { inject } = await createUsher(t, { ...usher.options, deadlines: { ...slow, userPurge: 200 } })
  const user = await createUser()
  const { id } = await upload(usher, 'Hello', undefined, user.headers)
  await sql.begin(async (trx) => {
    await trx`select from uploads where id = ${id} for update`
    t.equal((await inject('DELETE', `/api/users/${user.id}`, { headers: admin.headers })).statusCode, 204)
    await untilBlocked(sql, usher)
  })
})

t.test('4 a refresh returns no token if the session ends before the response', async (t) => {
  const asked: PromiseWithResolvers<void>[] = []
  const hosted = await createUsher(
    t, { ...usher.options, claims: async () => { await asked.at(-1)?.promise; return {} } }
  )
  const user = await createUser()
  asked.push(Promise.withResolvers())
  const refreshed = hosted.inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie } })
  const isReplaced = async () =>
    (await sql`select from sessions where user_id = ${user.id} and rotations = 1`).length === 1
  await until('the cookie has been replaced', isReplaced)
  await logout(user)
  const knows = async () => (await hosted.inject('GET', '/api/protected', { headers: user.headers })).statusCode === 401
  await until('the node knows of it', knows)
  asked.at(-1)!.resolve()
  const { statusCode, body } = await refreshed
  t.match([statusCode, body], [401, 'INVALID_SESSION'])
})
