import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { Type } from '@sinclair/typebox'
import Fastify from 'fastify'
import postgres from 'postgres'
import t from 'tap'
import plugin, { audiences, type UsherGraphQLContext, type UsherOptions } from '../../../app.ts'
import { createKey, createService, type TestKey } from '../../helpers/api-keys.ts'
import { createUsher, sharedUsher, withUsers, type LoggedIn } from '../../helpers/app.ts'
import { testDatabaseUrl, uniqueSchema } from '../../helpers/database.ts'
import { createEndDuring, lockTable } from '../../helpers/end-during.ts'
import { openEvents } from '../../helpers/events.ts'
import { openSocket, post } from '../../helpers/graphql.ts'
import { createMailer, tokenIn } from '../../helpers/mail.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'
import { until } from '../../helpers/until.ts'
import { fieldPart, filePart, post as postForm } from '../../helpers/uploads.ts'

const mailer = createMailer()
const usher = await createUsher(t, { mailer: mailer.mailer, publicUrl: 'https://example.com' })
const { app, inject, admin, createUser } = usher
const { sql, endDuring } = createEndDuring(t, usher)
/** Another node. */
const second = await createUsher(t, { schema: usher.options.schema! })

const REFUSED = [401, 'INVALID_TOKEN', 'Bearer error="invalid_token"']
const ask = async (headers: { authorization: string }, at = usher) => {
  const response = await at.inject('GET', '/api/protected', { headers })
  return [response.statusCode, response.json().code ?? response.json().user.id, response.headers['www-authenticate']]
}
const actionsOf = async (userId: string) =>
  [...await sql`select action, actor_id as "actorId", key_id as "keyId", session_id as "sessionId" from audit
    where user_id = ${userId} order by id`]
/** Makes the authentication of a user's sessions older than any limit. */
const age = ({ id }: LoggedIn) => sql`update sessions set auth_time = now() - interval '1 hour' where user_id = ${id}`
const errorOf = async (response: ReturnType<typeof inject>) => {
  const { statusCode, body } = await response
  return [statusCode, body === '' ? '' : JSON.parse(body).code ?? JSON.parse(body).errors]
}

t.test('17.1 a user creates a key, which is shown once, sees it, uses it, and deletes it', async (t) => {
  const user = await createUser({ name: 'Ada' })
  const payload = { name: ' Deployment ', actions: ['posts:create', 'posts:create'], expiresAt: '2999-01-01T00:00:00Z' }
  const response = await inject('POST', '/api/auth/keys', {
    headers: { ...user.headers, 'idempotency-key': '"d1c7a2c4-7c1b-4a69-a1b5-6b6d4c0d8e01"' }, payload,
  })
  t.equal(response.statusCode, 201)
  t.equal(response.headers['cache-control'], 'no-store')
  const { id, key, createdAt, ...shown } = response.json()
  t.equal(response.headers.location, `/api/auth/keys/${id}`)
  t.match(key, /^usher_[0-9A-Za-z]{49}$/)
  t.strictSame(
    shown, {
      name: 'Deployment', actions: ['posts:create'], organizationId: null, lastUsedAt: null, expiresAt: '2999-01-01T00:00:00.000Z',
    }
  )
  const [stored] = await sql`select hash from api_keys where id = ${id}`
  t.strictSame(Buffer.from(stored!.hash), createHash('sha256').update(key).digest(), 'only its SHA-256 is stored')
  t.equal((await sql`select from idempotency_keys`).length, 0, 'nor is the response stored')

  const listed = { id, createdAt, ...shown }
  t.strictSame((await inject('GET', '/api/auth/keys', { headers: user.headers })).json(), [listed])
  t.strictSame((await inject('GET', `/api/auth/keys/${id}`, { headers: user.headers })).json(), listed)
  t.strictSame((await inject('GET', `/api/users/${user.id}/keys`, { headers: admin.headers })).json(), [listed])

  const headers = { authorization: `Bearer ${key}` }
  t.strictSame((await ask(headers)).slice(0, 2), [200, user.id])
  t.strictSame((await ask(headers, second)).slice(0, 2), [200, user.id], 'on every node')
  t.equal((await inject('DELETE', `/api/auth/keys/${id}`, { headers: user.headers })).statusCode, 204)
  t.strictSame(await ask(headers), REFUSED)
  t.strictSame(
    await errorOf(inject('DELETE', `/api/auth/keys/${id}`, { headers: user.headers })), [404, 'API_KEY_NOT_FOUND']
  )
})

t.test('17.1 a key needs step-up, a name, known actions, and an expiry in the future; a user has at most 50', async (t) => {
  const user = await createUser()
  const create = (payload: object) => errorOf(inject('POST', '/api/auth/keys', { headers: user.headers, payload }))
  const invalid: [payload: object, error: string][] = [
    [{}, 'name is required'],
    [{ name: ' ' }, 'name must not be blank'],
    [{ name: 'x'.repeat(101) }, 'name must be at most 100 characters'],
    [{ name: 'A\0' }, 'name must not contain control characters'],
    [{ name: 'A', actions: 'posts:create' }, 'actions must be an array'],
    [{ name: 'A', actions: [] }, 'actions must not be empty'],
    [{ name: 'A', actions: ['posts:fly'] }, 'actions has "posts:fly", which is no action'],
    [{ name: 'A', actions: ['__proto__'] }, 'actions has "__proto__", which is no action'],
    [{ name: 'A', actions: ['passwords:change'] }, 'actions has passwords:change, which needs a session'],
    [{ name: 'A', expiresAt: 'soon' }, 'expiresAt must be a valid date-time'],
    [{ name: 'A', expiresAt: '2000-01-01T00:00:00Z' }, 'expiresAt must be in the future'],
  ]
  for (const [payload, error] of invalid) t.strictSame(await create(payload), [400, [error]])
  await sql`insert into api_keys (id, user_id, hash, name, multi_factor)
    select gen_random_uuid(), ${user.id}, sha256(n::text::bytea), 'Key', false from generate_series(1, 50) as n`
  t.strictSame(await create({ name: 'One more' }), [409, 'TOO_MANY_API_KEYS'])
  await age(user)
  t.strictSame(await create({ name: 'A' }), [403, 'STEP_UP_REQUIRED'])
  await sql`delete from api_keys where user_id = ${user.id}`
})

t.test('17.2 an invalid key is 401, and no key is read from the URL', async (t) => {
  const user = await createUser()
  const { key } = await createKey(usher, user)
  const last = key.endsWith('0') ? '1' : '0'
  for (const wrong of [`${key.slice(0, -1)}${last}`, key.slice(0, -1), `${key}0`, key.toUpperCase(), 'usher_', `${key} x`]) {
    t.strictSame(await ask({ authorization: `Bearer ${wrong}` }), REFUSED, wrong)
  }
  for (const name of ['access_token', 'token', 'key', 'authorization']) {
    const response = await inject('GET', `/api/protected?${name}=${key}`)
    t.strictSame([response.statusCode, response.json().code], [401, 'UNAUTHENTICATED'])
  }
})

t.test('17.2 a deleted key is rejected on every node, and its sockets, event streams and downloads end', async (t) => {
  const user = await createUser()
  const { id, headers } = await createKey(usher, user)
  const socket = await (await openSocket(t, second)).init({ authorization: headers.authorization })
  socket.start('posts', 'subscription { postCreated { title } }')
  await socket.settle()
  const events = await openEvents(t, second, {
    method: 'POST', headers, body: JSON.stringify({ query: 'subscription { postCreated { title } }' }),
  })
  t.equal(events.response.status, 200)
  t.strictSame((await ask(headers, second)).slice(0, 2), [200, user.id])
  t.equal((await inject('DELETE', `/api/auth/keys/${id}`, { headers: user.headers })).statusCode, 204)
  t.strictSame(await ask(headers), REFUSED, 'at once on the node that has deleted it')
  t.equal(await socket.closed, 4403)
  t.equal(await events.next(), undefined)
  await until('the other node rejects it', async () => (await ask(headers, second))[0] === 401)
  const late = await (await openSocket(t, second)).init({ authorization: headers.authorization }).catch(() => 'refused')
  t.equal(late, 'refused')
})

t.test('17.2 a key works with REST, GraphQL, sockets, event streams and uploads', async (t) => {
  const user = await createUser({ name: 'Ada' })
  const { headers } = await createKey(usher, user)
  const mutation = 'mutation { createPost(input: { title: "By key", content: "" }) { author { id } } }'
  const { data } = await post(usher, { query: mutation }, { ...user, headers })
  t.equal(data.createPost.author.id, user.id)
  const socket = await (await openSocket(t, usher)).init({ authorization: headers.authorization })
  t.strictSame((await socket.run('{ me { name } }')).data, { me: { name: 'Ada' } })
  t.equal((await postForm(usher, [fieldPart('description', 'Words'), filePart('Text')], { headers })).statusCode, 200)
  t.equal((await inject(
    'PATCH', `/api/users/${user.id}`, { headers, payload: { name: 'Lovelace' } }
  )).statusCode, 200)
})

t.test('17.2 a write that waits while its key is deleted or expires changes nothing', async (t) => {
  const user = await createUser()
  const write = (headers: { authorization: string }) => inject('POST', '/graphql', {
    headers, payload: { query: 'mutation { createPost(input: { title: "Late", content: "" }) { id } }' },
  })
  const deleted = await createKey(usher, user)
  const expiring = await createKey(usher, user, { expiresAt: new Date(Date.now() + 2000).toISOString() })
  const ends: [key: TestKey, end: () => Promise<unknown>][] = [
    [expiring, () => until('it has expired', async () =>
      (await sql`select from api_keys where id = ${expiring.id} and expires_at < clock_timestamp()`).length > 0)],
    [deleted, () => inject('DELETE', `/api/auth/keys/${deleted.id}`, { headers: user.headers })],
  ]
  for (const [{ headers }, end] of ends) {
    t.equal((await ask(headers))[0], 200)
    const response = await endDuring(user, lockTable('posts'), () => write(headers), end)
    t.equal(response.json().errors?.[0].extensions.code, 'INVALID_TOKEN')
  }
  t.equal((await sql`select from posts where title = 'Late'`).length, 0)
})

t.test('17.2 the account log has the key of the actor, and lists say when a key was used last', async (t) => {
  const user = await createUser({ email: 'grace@example.com' })
  const { id, headers } = await createKey(usher, user)
  const other = await createUsher(t, { schema: usher.options.schema! })
  await other.inject('PATCH', `/api/users/${admin.id}`, { headers, payload: { name: 'No' } })
  const { id: ofAdmin, headers: byAdmin } = await createKey(usher, admin)
  const payload = { name: 'By key', email: 'by-key@example.com' }
  const created = (await other.inject('POST', '/api/users', { headers: byAdmin, payload })).json()
  await other.inject('PATCH', `/api/users/${created.id}`, { headers: byAdmin, payload: { disabled: true } })
  await other.app.close()
  t.match(await actionsOf(created.id), [
    { action: 'user.create', actorId: admin.id, keyId: ofAdmin, sessionId: null },
    { action: 'user.disable', actorId: admin.id, keyId: ofAdmin, sessionId: null },
  ])
  const entries = (await inject('GET', `/api/audit?user=${user.id}`, { headers: admin.headers })).json()
  t.match(entries.find(({ action }: { action: string }) => action === 'access.denied'), { keyId: id, sessionId: null })
  t.match(entries.find(({ action }: { action: string }) => action === 'api-key.add'), { keyId: null, actorId: user.id })
  const [listed] = (await inject('GET', '/api/auth/keys', { headers: user.headers })).json()
  t.ok(Math.abs(Date.parse(listed.lastUsedAt) - Date.now()) < 600_000, 'stored when the node has closed at the latest')
})

t.test('17.1 no key decides who has the account: it cannot log out, step up, or change how its user signs in', async (t) => {
  const user = await createUser()
  const { headers } = await createKey(usher, user)
  const requests: [method: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'GET', path: string, payload?: object][] = [
    ['POST', '/api/auth/keys', { name: 'Another' }],
    ['POST', '/api/auth/logout'],
    ['POST', '/api/auth/step-up', { password: user.password }],
    ['POST', '/api/auth/step-up/options'],
    ['PUT', '/api/auth/password', { currentPassword: user.password, password: 'another password' }],
    ['POST', '/api/auth/totp'],
    ['POST', '/api/auth/recovery-codes'],
    ['GET', '/api/auth/second-factor'],
    ['POST', '/api/auth/passkeys/options'],
    ['PATCH', '/api/auth/passkeys/00000000-0000-7000-8000-000000000000', { name: 'A' }],
    ['DELETE', '/api/auth/passkeys/00000000-0000-7000-8000-000000000000'],
    ['DELETE', `/api/users/${user.id}`],
    ['PATCH', `/api/users/${user.id}`, { email: 'thief@example.com' }],
  ]
  for (const [method, path, payload] of requests) {
    const response = inject(method, path, { headers, ...payload && { payload } })
    t.strictSame(await errorOf(response), [403, 'SESSION_REQUIRED'], `${method} ${path}`)
  }
  const same = { name: 'Renamed', email: user.email }
  t.equal((await inject('PUT', `/api/users/${user.id}`, { headers, payload: same })).statusCode, 200, 'the same address')
  const both = { ...headers, cookie: user.cookie }
  t.equal((await inject('POST', '/api/auth/logout', { headers: both })).statusCode, 204)
  t.strictSame(await ask(user.headers), REFUSED, 'the session of the cookie has ended')
  t.strictSame((await ask(headers)).slice(0, 2), [200, user.id], 'the key has not')
})

const userFields = Type.Object({
  phone: Type.Optional(Type.String()), nick: Type.Optional(Type.String({ 'x-read': 'anyone' })),
})
const policy = { 'users:read-email': audiences.owners, 'bookmarks:create': () => true } as UsherOptions['policy']

t.test('17.1 a key with actions has no others, and reads what anybody may read', async (t) => {
  const owners = await sharedUsher({ userFields, policy })
  const user = await owners.createUser({ name: 'Ada' })
  const { headers } = await createKey(owners, user, { actions: ['posts:create', 'bookmarks:create'] })
  const full = await createKey(owners, user)
  const read = async (given: { authorization: string }) =>
    (await owners.inject('GET', `/api/users/${user.id}`, { headers: given })).json().email
  t.strictSame([await read(headers), await read(full.headers)], [undefined, user.email])
  t.equal((await owners.inject('GET', '/api/protected', { headers })).json().user.email, undefined)
  const mine = { query: '{ me { name email } }' }
  t.strictSame((await post(owners, mine, { ...user, headers })).data, { me: { name: 'Ada', email: null } })
  const refused = await owners.inject('PATCH', `/api/users/${user.id}`, { headers, payload: { name: 'No' } })
  t.strictSame(refused.json(), { error: 'This API key does not have the action users:replace', code: 'ACTION_NOT_GRANTED' })
  t.strictSame(await errorOf(owners.inject('GET', '/api/audit', { headers })), [403, 'ACTION_NOT_GRANTED'])
  t.strictSame(await errorOf(owners.inject('GET', '/api/auth/keys', { headers })), [403, 'ACTION_NOT_GRANTED'])
  t.strictSame(await errorOf(
    owners.inject('DELETE', '/api/auth/sessions/00000000-0000-7000-8000-000000000000', { headers })
  ), [403, 'ACTION_NOT_GRANTED'])
  const replacer = await createKey(owners, user, { actions: ['users:replace'] })
  for (const email of [user.email, 'guess@example.com']) {
    t.strictSame(await errorOf(owners.inject(
      'PATCH', `/api/users/${user.id}`, { headers: replacer.headers, payload: { email } }
    )), [403, 'SESSION_REQUIRED'], 'it does not learn the address by guessing')
  }
})

t.test('17.1 fields of a host that only the user sees are hidden from a key that may not read the account', async (t) => {
  const hosted = await sharedUsher({ userFields, policy })
  const user = await hosted.createUser()
  const payload = { phone: '1', nick: 'A' }
  await hosted.inject('PATCH', `/api/users/${user.id}`, { headers: hosted.admin.headers, payload })
  const read = async (actions?: string[]) => {
    const { headers } = await createKey(hosted, user, { ...actions && { actions } })
    const { phone, nick, email } = (await hosted.inject('GET', `/api/users/${user.id}`, { headers })).json()
    const { data } = await post(hosted, { query: '{ me { phone nick } }' }, { ...user, headers })
    return [phone, nick, email !== undefined, data.me]
  }
  t.strictSame(await read(), ['1', 'A', true, { phone: '1', nick: 'A' }])
  t.strictSame(await read(['users:read-email']), ['1', 'A', true, { phone: '1', nick: 'A' }])
  t.strictSame(await read(['posts:create']), [undefined, 'A', false, { phone: null, nick: 'A' }])
})

t.test('17.1 a repair that a new key has waited for leaves no key', async (t) => {
  const user = await createUser()
  const response = await endDuring(
    user,
    (trx) => trx`select from users where id = ${user.id} for update`,
    () => inject('POST', '/api/auth/keys', { headers: user.headers, payload: { name: 'Late' } }),
    (trx) => trx`delete from sessions where user_id = ${user.id}`
  )
  t.strictSame([response.statusCode, response.json().code], [401, 'INVALID_TOKEN'])
  t.equal((await sql`select from api_keys where user_id = ${user.id}`).length, 0)
})

t.test('17.1 what is rendered for one reader is not sent to a key that may see less', async (t) => {
  const members = await createUsher(t, { policy: { 'users:read-email': audiences.members } })
  const user = await members.createUser({ email: 'ada@example.com' })
  const limited = await createKey(members, user, { actions: ['posts:read'] })
  const full = await createKey(members, user)
  const query = 'subscription { postCreated { author { email } } }'
  const sockets = await Promise.all([user.headers, full.headers, limited.headers].map(async ({ authorization }) => {
    const socket = await (await openSocket(t, members)).init({ authorization })
    socket.start('posts', query)
    await socket.settle()
    return socket
  }))
  await post(members, { query: 'mutation { createPost(input: { title: "A", content: "" }) { id } }' }, user)
  const seen = await Promise.all(sockets.map(async (socket) =>
    (await socket.next()).payload!.data.postCreated.author.email))
  t.strictSame(seen, ['ada@example.com', 'ada@example.com', null])
})

t.test('17.1 what takes rights away, and every repair, voids the keys of a user on every node', async (t) => {
  const repairs: Record<string, (user: LoggedIn) => Promise<unknown>> = {
    'an admin disables the user': ({ id }) =>
      inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: { disabled: true } }),
    'the user becomes an admin': ({ id }) =>
      inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: { role: 'admin' } }),
    'the user is deleted': ({ id }) => inject('DELETE', `/api/users/${id}`, { headers: admin.headers }),
    'an admin ends all sessions': ({ id }) => inject('DELETE', `/api/users/${id}/sessions`, { headers: admin.headers }),
    'a reset by mail': async ({ email }) => {
      await inject('POST', '/api/auth/password-reset', { payload: { email } })
      const mails = await mailer.of(email, 2)
      const token = tokenIn(mails.find(({ text }) => text.includes('set-password#'))!)
      return inject('POST', '/api/auth/password-reset/confirm', { payload: { token, password: 'another password' } })
    },
    'the link of the mail about the key': async ({ email }) => {
      const [mail] = await mailer.of(email, 1)
      t.match(mail!.text, /API key was created/)
      return inject('POST', '/api/auth/undo', { payload: { token: tokenIn(mail!) } })
    },
  }
  for (const [name, repair] of Object.entries(repairs)) {
    const user = await createUser()
    const { headers } = await createKey(usher, user)
    t.strictSame([(await ask(headers))[0], (await ask(headers, second))[0]], [200, 200])
    await repair(user)
    t.strictSame(await ask(headers), REFUSED, name)
    await until('the other node rejects it', async () => (await ask(headers, second))[0] === 401)
  }
})

t.test('17.1 the key of an admin who is demoted is void, also by psql', async (t) => {
  for (const demote of [
    (id: string) => inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: { role: 'user' } }),
    (id: string) => sql`update users set role = 'user' where id = ${id}`,
  ]) {
    const { id, ...user } = await createUser({ role: 'admin' })
    const { headers } = await createKey(usher, user)
    t.equal((await inject('GET', `/api/users/${admin.id}/sessions`, { headers })).statusCode, 200)
    await demote(id)
    await until('it is rejected', async () => (await ask(headers))[0] === 401)
  }
})

t.test('17.1 what users do for their own safety by themselves keeps their keys', async (t) => {
  const user = await createUser()
  const { headers } = await createKey(usher, user)
  const changed = await inject('PUT', '/api/auth/password', {
    headers: user.headers, payload: { currentPassword: user.password, password: 'another password' },
  })
  t.equal(changed.statusCode, 204)
  t.equal((await inject('DELETE', '/api/auth/sessions', { headers: user.headers })).statusCode, 204)
  t.equal((await ask(headers))[0], 200)
  t.equal((await inject('DELETE', `/api/users/${user.id}/sessions`, { headers: user.headers })).statusCode, 204)
  t.equal((await ask(headers))[0], 200)
})

t.test('17.1 an admin creates a service user with a key; nothing logs it in', async (t) => {
  const id = await createService(usher, { email: 'robot@example.com' })
  const record = (await inject('GET', `/api/users/${id}`)).json()
  t.match(record, { kind: 'service', name: 'Robot' })
  const { data } = await post(usher, { query: `{ user(id: "${id}") { kind } }` })
  t.strictSame(data, { user: { kind: 'service' } })
  const { headers, id: keyId } = await createKey(usher, admin, { userId: id, actions: ['posts:create', 'posts:read'] })
  t.strictSame((await ask(headers)).slice(0, 2), [200, id])
  t.equal((await inject('GET', `/api/users/${id}/keys/${keyId}`, { headers: admin.headers })).statusCode, 200)
  t.match((await mailer.of('robot@example.com', 1))[0]!.text, /no link with which you could undo it/)

  t.strictSame(await errorOf(inject('POST', '/api/users', {
    headers: admin.headers, payload: { name: 'R', email: 'r@example.com', kind: 'service', password: 'horse staple' },
  })), [400, ['password must be absent for a service user']])
  t.strictSame(await errorOf(inject('POST', `/api/users/${id}/invitation`, { headers: admin.headers })), [409, 'SERVICE_USER'])
  await inject('POST', '/api/auth/password-reset', { payload: { email: 'robot@example.com' } })
  await t.rejects(app.usher.sessions.start(id), { statusCode: 409, code: 'SERVICE_USER' })
  // As if psql had set a password.
  const [{ hash }] = await sql<[{ hash: string }]>`select password_hash as hash from users where id = ${admin.id}`
  await sql`update users set password_hash = ${hash} where id = ${id}`
  t.strictSame(await errorOf(inject('POST', '/api/auth/login', {
    payload: { email: 'robot@example.com', password: admin.password },
  })), [401, 'INVALID_CREDENTIALS'])
  t.equal((await sql`select from password_links where user_id = ${id}`).length, 0)
  t.equal((await inject('DELETE', `/api/users/${id}/keys/${keyId}`, { headers: admin.headers })).statusCode, 204)
  t.strictSame(await ask(headers), REFUSED)
})

t.test('17.1 an admin who was not authenticated recently creates no key of a service user either', async (t) => {
  const id = await createService(usher, { email: 'step-up@example.com' })
  const somebody = await createUser({ role: 'admin' })
  await age(somebody)
  const create = () => inject('POST', `/api/users/${id}/keys`, { headers: somebody.headers, payload: { name: 'A' } })
  t.strictSame(await errorOf(create()), [403, 'STEP_UP_REQUIRED'])
})

t.test('17.1 fields of a host do for a key with actions what they do for anybody, and its mutations reject it', async (t) => {
  const hosted = await createUsher(t, {
    graphql: {
      typeDefs: 'extend type Query { whoami: ID } extend type Mutation { touch: Boolean }',
      resolvers: {
        Query: { whoami: (_: unknown, __: unknown, { actor }: UsherGraphQLContext) => actor?.id },
        Mutation: { touch: () => true },
      },
    },
  })
  const limited = await createKey(hosted, hosted.admin, { actions: ['posts:create'] })
  const full = await createKey(hosted, hosted.admin)
  const ask = async ({ headers }: TestKey, query: string) => {
    const { data, errors } = await post(hosted, { query }, { ...hosted.admin, headers })
    return errors?.[0]?.extensions.code ?? data
  }
  t.strictSame([await ask(limited, '{ whoami }'), await ask(limited, 'mutation { touch }')], [{ whoami: null }, 'FORBIDDEN'])
  t.strictSame(
    [await ask(full, '{ whoami }'), await ask(full, 'mutation { touch }')], [{ whoami: hosted.admin.id }, { touch: true }]
  )
})

t.test('17.1 nobody creates a key in the name of another person, and admins see and delete those of others', async (t) => {
  const user = await createUser()
  const { id, headers } = await createKey(usher, user)
  const create = (headers: { authorization: string }, userId: string) =>
    errorOf(inject('POST', `/api/users/${userId}/keys`, { headers, payload: { name: 'A' } }))
  t.strictSame(await create(admin.headers, user.id), [409, 'NOT_A_SERVICE_USER'])
  t.strictSame(await create(user.headers, admin.id), [403, 'FORBIDDEN'])
  t.strictSame(await create(admin.headers, '00000000-0000-7000-8000-000000000000'), [404, 'USER_NOT_FOUND'])
  const stranger = await createUser()
  for (const method of ['GET', 'DELETE'] as const) {
    const path = `/api/users/${user.id}/keys/${id}`
    t.strictSame(await errorOf(inject(method, path, { headers: stranger.headers })), [403, 'FORBIDDEN'])
    t.strictSame(
      await errorOf(inject(method, `/api/auth/keys/${id}`, { headers: stranger.headers })), [404, 'API_KEY_NOT_FOUND']
    )
  }
  t.equal((await inject('DELETE', `/api/users/${user.id}/keys/${id}`, { headers: admin.headers })).statusCode, 204)
  t.strictSame(await ask(headers), REFUSED)
  t.match((await actionsOf(user.id)).at(-1), { action: 'api-key.remove', actorId: admin.id })
})

t.test('17.1 a key expires by itself, and is then deleted', async (t) => {
  const user = await createUser()
  const { id, headers } = await createKey(usher, user, { expiresAt: new Date(Date.now() + 1500).toISOString() })
  const socket = await (await openSocket(t, usher)).init({ authorization: headers.authorization })
  t.equal(await socket.closed, 4403)
  t.strictSame(await ask(headers), REFUSED)
  t.strictSame((await inject('GET', '/api/auth/keys', { headers: user.headers })).json(), [])
  await createUsher(t, { schema: usher.options.schema! })
  await until('a start purges it', async () => (await sql`select from api_keys where id = ${id}`).length === 0)
})

t.test('17.1 a key is for its mount alone', async (t) => {
  const other = await sharedUsher()
  const { headers } = await createKey(other, await other.createUser())
  t.strictSame(await ask(headers), REFUSED)
  t.equal((await ask(headers, other))[0], 200)
})

t.test('17.2 a request with a known key reads nothing from the database, nor does one with a wrong checksum', async (t) => {
  const statements: string[] = []
  const client = postgres(
    await testDatabaseUrl(), { max: 4, onnotice: () => {}, debug: (_, text) => { statements.push(text) } }
  )
  t.teardown(() => client.end())
  const host = Fastify({ pluginTimeout: 0, forceCloseConnections: true })
  t.teardown(() => host.close())
  const options = {
    sql: client,
    schema: uniqueSchema(t.name),
    uploadsDir: temporaryFolder(),
    admin: { email: 'admin@example.com', password: 'horse battery staple' },
  }
  await host.register(plugin, options)
  host.get('/mine', { onRequest: host.usher.authenticate }, async ({ actor }) => actor)
  host.post('/posts', { onRequest: host.usher.allow('posts:create') }, async ({ actor }) => actor)
  host.get('/anybody', { onRequest: host.usher.identify }, async ({ actor }) => ({ id: actor?.id }))
  const mounted = await withUsers(host, options)
  const key = await createKey(mounted, mounted.admin)
  const limited = await createKey(mounted, mounted.admin, { actions: ['posts:create'] })
  const gone = await createKey(mounted, mounted.admin)
  await mounted.inject('DELETE', `/api/auth/keys/${gone.id}`, { headers: mounted.admin.headers })
  const wrong = { authorization: `Bearer usher_${'x'.repeat(49)}` }
  const send = (url: string, headers: object, method: 'GET' | 'POST' = 'GET') => host.inject({ method, url, headers: { ...headers } })
  const actor = (await send('/mine', key.headers)).json()
  t.match(actor, { id: mounted.admin.id, role: 'admin', sessionId: null, keyId: key.id, actions: null, amr: [], authTime: 0 })
  t.equal((await send('/posts', limited.headers, 'POST')).json().actions[0], 'posts:create')
  // The start of the app may still send statements, and if the machine stalls for a tenth of a second, the node asks
  // for the key. Therefore the test repeats the check.
  await until('requests without a statement', async () => {
    statements.length = 0
    for (let count = 0; count < 10; count++) {
      t.equal((await send('/mine', key.headers)).statusCode, 200)
      t.equal((await send('/posts', limited.headers, 'POST')).statusCode, 200)
      t.equal((await send('/mine', wrong)).statusCode, 401)
      await setImmediate()
    }
    return statements.length === 0
  })
  t.equal((await send('/mine', gone.headers)).statusCode, 401)
  t.ok(statements.length > 0, 'they are counted')

  t.equal((await send('/mine', limited.headers)).statusCode, 403, 'no action permits a route that names none')
  t.strictSame((await send('/anybody', limited.headers)).json(), {})
  t.strictSame((await send('/anybody', key.headers)).json(), { id: mounted.admin.id })
})
