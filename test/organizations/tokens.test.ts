import { createPrivateKey, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import Fastify from 'fastify'
import { decodeJwt } from 'jose'
import postgres from 'postgres'
import t from 'tap'
import usher, { audiences, type Actor } from '../../app.ts'
import { HEARTBEAT } from '../../db/driver/notification-connection.ts'
import { createKey, createService } from '../helpers/api-keys.ts'
import { createUsher, withUsers, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { createEndDuring, lockTable, type Lock } from '../helpers/end-during.ts'
import { openEvents } from '../helpers/events.ts'
import { createPost, hostOf, openSocket, post } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { until } from '../helpers/until.ts'
import { upload } from '../helpers/uploads.ts'

const ENDED = {
  error: 'The membership of this token has ended or has another role now: refresh the session', code: 'MEMBERSHIP_ENDED',
}
const CHALLENGE = 'Bearer error="invalid_token"'

const name = `organizations ${process.pid}`
const one = await createUsher(t, {
  databaseUrl: `${await testDatabaseUrl()}?application_name=${encodeURIComponent(name)}`,
  organizations: { roles: { editor: ['posts:update'] } },
})
const two = await createUsher(t, one.options)
const { sql, logout, endDuring } = createEndDuring(t, one)
const { inject, admin } = one

/** A user with a token for an organisation. */
interface Member extends LoggedIn { organizationId: string, membershipId: string }

async function addOrganization (): Promise<string> {
  const id = randomUUID()
  await sql`insert into organizations (id, name, slug) values (${id}, 'Acme', ${`o-${id.slice(0, 8)}`})`
  return id
}

async function join (userId: string, organizationId: string, role = 'member'): Promise<string> {
  const id = randomUUID()
  await sql`insert into memberships (id, organization_id, user_id, role) values (${id}, ${organizationId}, ${userId}, ${role})`
  return id
}

const askToken = ({ headers }: Pick<LoggedIn, 'headers'>, payload: object, node = one) =>
  node.inject('POST', '/api/auth/token', { headers, payload })

const withToken = <User extends LoggedIn>(user: User, token: string): User =>
  ({ ...user, token, headers: { authorization: `Bearer ${token}` } })

async function createMember (role = 'member', given?: LoggedIn): Promise<Member> {
  const user = given ?? await one.createUser()
  const organizationId = await addOrganization()
  const membershipId = await join(user.id, organizationId, role)
  const { token } = (await askToken(user, { organizationId })).json()
  return { ...withToken(user, token), organizationId, membershipId }
}

const leave = ({ membershipId }: Member): Lock => (trx) => trx`delete from memberships where id = ${membershipId}`
const leaveNow = ({ membershipId }: Member) => sql`delete from memberships where id = ${membershipId}`
const setRole = ({ membershipId }: Member, role: string, id = randomUUID()) =>
  sql`update memberships set id = ${id}, role = ${role} where id = ${membershipId}`
const ask = (node: TestUsher, { headers }: Pick<LoggedIn, 'headers'>) => node.inject('GET', '/api/protected', { headers })

/** Waits until a node rejects a token. Returns its last answer. */
async function rejection (node: TestUsher, user: Pick<LoggedIn, 'headers'>) {
  const since = performance.now()
  for (;;) {
    const response = await ask(node, user)
    if (response.statusCode !== 200) {
      t.comment(`rejected after ${Math.round(performance.now() - since)} ms`)
      return [response.statusCode, response.headers['www-authenticate'], response.json()]
    }
    if (performance.now() - since > 60_000) throw new Error('still accepted')
  }
}

t.test('19.3 a member gets another token of the session, for an organisation, and back', async (t) => {
  const user = await one.createUser()
  const organizationId = await addOrganization()
  const membershipId = await join(user.id, organizationId, 'editor')
  const response = await askToken(user, { organizationId })
  t.equal(response.statusCode, 200)
  t.equal(response.headers['set-cookie'], undefined)
  t.equal(response.headers['cache-control'], 'no-store')
  const { token, tokenType, expiresIn, user: shown, organization, ...rest } = response.json()
  t.strictSame([tokenType, shown.id, organization, rest], [
    'Bearer', user.id, { id: organizationId, role: 'editor', membershipId }, {},
  ])
  t.ok(expiresIn > 890 && expiresIn <= 900)
  const claims = decodeJwt(token)
  t.match(claims, { sub: user.id, sid: decodeJwt(user.token).sid, org: organizationId, org_role: 'editor', mid: membershipId })
  t.equal((await ask(one, withToken(user, token))).statusCode, 200)

  const back = (await askToken(withToken(user, token), {})).json()
  t.equal(back.organization, null)
  t.notMatch(decodeJwt(back.token), { org: String })
  t.equal((await ask(one, withToken(user, back.token))).statusCode, 200)
})

t.test('19.3 another token expires no later than its session, and has the role of the user as stored now', async (t) => {
  const user = await createMember()
  await sql`update sessions set expires_at = now() + interval '1 minute' where id = ${decodeJwt(user.token).sid as string}`
  await sql`update users set role = 'admin' where id = ${user.id}`
  const { token, expiresIn } = (await askToken(user, { organizationId: user.organizationId })).json()
  t.ok(expiresIn <= 60, expiresIn)
  const { exp, iat, role } = decodeJwt(token)
  t.ok(exp! - iat! <= 60)
  t.equal(role, 'admin')
})

t.test('19.3 to a user who is no member, an organisation does not exist', async (t) => {
  const user = await one.createUser()
  const { organizationId } = await createMember()
  const asked = [organizationId, randomUUID(), 'x', '']
  const answers = await Promise.all(asked.map((organizationId) => askToken(user, { organizationId })))
  for (const { statusCode, body } of answers) {
    t.equal(statusCode, 404)
    t.equal(body, '{"error":"Organisation not found","code":"ORGANIZATION_NOT_FOUND"}')
  }
  await join(user.id, organizationId, 'gone')
  t.equal((await askToken(user, { organizationId })).statusCode, 404, 'nor with a role that there is not')
  t.equal((await askToken(user, { organizationId: 1 })).statusCode, 400)
})

t.test('19.3 only a session gets another token', async (t) => {
  const member = await createMember()
  const key = await createKey(one, await one.login(member))
  t.match((await askToken(key, {})).json(), { code: 'SESSION_REQUIRED' })
  t.equal((await one.inject('POST', '/api/auth/token', { payload: {} })).statusCode, 401)
  await logout(member)
  t.match((await askToken(member, {})).json(), { code: 'INVALID_TOKEN' })
})

t.test('19.3 a refresh takes the organisation; without a body it is as before', async (t) => {
  const user = await createMember()
  const refresh = (cookie: string, payload?: object) =>
    inject('POST', '/api/auth/refresh', { headers: { cookie }, ...payload && { payload } })
  const first = await refresh(user.cookie, { organizationId: user.organizationId })
  t.match(first.json(), { organization: { id: user.organizationId, membershipId: user.membershipId, role: 'member' } })
  t.equal(decodeJwt(first.json().token).mid, user.membershipId)
  const cookieOf = ({ cookies }: typeof first) => `${cookies[0]!.name}=${cookies[0]!.value}`

  const none = await refresh(cookieOf(first))
  t.match([none.statusCode, none.json()], [200, { organization: null }])
  await leaveNow(user)
  const refused = await refresh(cookieOf(none), { organizationId: user.organizationId })
  t.match([refused.statusCode, refused.json()], [404, { code: 'ORGANIZATION_NOT_FOUND' }])
  t.equal((await refresh(cookieOf(refused))).statusCode, 200, 'the next cookie was set nevertheless')
})

t.test('19.3 without the option, there is no such route, and a refresh ignores a body', async (t) => {
  const { organizations, ...rest } = one.options
  const without = await createUsher(t, { ...rest, claims: () => ({ org: 'Acme', mid: 7 }) })
  const user = await without.createUser()
  t.equal((await askToken(user, {}, without)).statusCode, 404)
  const response =
    await without.inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie }, payload: { organizationId: 'x' } })
  t.equal(response.statusCode, 200)
  t.notOk('organization' in response.json())
  t.match(decodeJwt(response.json().token), { org: 'Acme', mid: 7 })
  t.equal((await ask(without, withToken(user, response.json().token))).statusCode, 200)
})

t.test('19.3 with the option, the claims of a host cannot have these names', async (t) => {
  let added = {}
  const node = await createUsher(t, { ...one.options, claims: () => added })
  const { email, password } = await one.createUser()
  for (const [name, status] of [['org', 500], ['org_role', 500], ['mid', 500], ['other', 200]] as const) {
    added = { [name]: 'x' }
    const response = await node.inject('POST', '/api/auth/login', { payload: { email, password } })
    t.equal(response.statusCode, status, name)
  }
})

t.test('19.3 a token with other claims of an organisation is rejected', async (t) => {
  const user = await createMember()
  const [key] = await sql`select id, private_key from signing_keys`
  const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = (changes: object) => {
    const input = `${base64url({ alg: 'EdDSA', typ: 'JWT', kid: key!.id })}.${base64url({ ...decodeJwt(user.token), ...changes })}`
    return `${input}.${sign(null, Buffer.from(input), createPrivateKey(key!.private_key)).toString('base64url')}`
  }
  const { org, org_role: role, mid } = decodeJwt(user.token)
  t.equal((await ask(one, withToken(user, signed({ org, org_role: role, mid })))).statusCode, 200)
  const wrong: Record<string, object> = {
    'without a membership': { mid: undefined },
    'without a role': { org_role: undefined },
    'without an organisation': { org: undefined },
    'only a membership': { org: undefined, org_role: undefined },
    'an unknown role': { org_role: 'emperor' },
    'no text': { org_role: 7 },
    'no id': { org: 'x' },
    'no membership': { mid: 'x' },
    null: { org: null, org_role: null, mid: null },
  }
  for (const [what, claims] of Object.entries(wrong)) {
    const response = await ask(one, withToken(user, signed({ ...claims })))
    t.match([response.statusCode, response.json()], [401, { code: 'INVALID_TOKEN' }], what)
  }
})

t.test('19.3 a membership that has ended or got another role is rejected on every node, and the session lives', async (t) => {
  const ends: Record<string, (member: Member) => PromiseLike<unknown>> = {
    removed: leaveNow,
    'another role': (member) => setRole(member, 'admin'),
    'the organisation deleted': ({ organizationId }) => sql`delete from organizations where id = ${organizationId}`,
  }
  for (const [how, end] of Object.entries(ends)) {
    const session = await one.createUser()
    const member = await createMember('member', session)
    t.same([(await ask(one, member)).statusCode, (await ask(two, member)).statusCode], [200, 200])
    await end(member)
    t.same(await Promise.all([rejection(one, member), rejection(two, member)]), [
      [401, CHALLENGE, ENDED], [401, CHALLENGE, ENDED],
    ], how)
    t.equal((await ask(two, session)).statusCode, 200, 'another token of the session')
    t.match(await one.inject('POST', '/graphql', { headers: member.headers, payload: { query: '{ __typename }' } }), {
      body: /MEMBERSHIP_ENDED/,
    })
    await logout(session)
    t.match(await rejection(two, session), [401, CHALLENGE, { code: 'INVALID_TOKEN' }])
    t.match(await rejection(two, member), [401, CHALLENGE, { code: 'INVALID_TOKEN' }], 'of an ended session')
  }
})

t.test('19.3 a node without notifications reads the membership from the database', async (t) => {
  const user = await one.createUser()
  for (let round = 0; round < 3; round++) {
    const member = await createMember('member', user)
    t.equal((await ask(two, member)).statusCode, 200)
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name = ${name} and (query ilike '%listen "%' or query = ${HEARTBEAT})`
    await leaveNow(member)
    t.same(await rejection(two, member), [401, CHALLENGE, ENDED])
    t.equal((await ask(two, user)).statusCode, 200, 'what lives is accepted meanwhile')
  }
})

t.test('19.3 sockets and event streams end with the membership, and those of the session stay', async (t) => {
  const session = await one.createUser()
  const member = await createMember('member', session)
  const query = '?query=subscription { postCreated { title } }'
  const [socket, kept] = [await openSocket(t, two), await openSocket(t, two)]
  await socket.init({ authorization: `Bearer ${member.token}` })
  await kept.init({ authorization: `Bearer ${session.token}` })
  const events = await openEvents(t, two, { query, headers: member.headers })
  await leaveNow(member)
  t.equal(await socket.closed, 4403)
  t.equal(await events.next(), undefined)
  await kept.settle()
  const late = await openSocket(t, two)
  late.send({ type: 'connection_init', payload: { authorization: `Bearer ${member.token}` } })
  const reason = new Promise((resolve) => {
    late.socket.on('close', (_, text) => resolve(String(text)))
  })
  t.same([await late.closed, await reason], [4403, 'MEMBERSHIP_ENDED'])
  const refused = await fetch(`http://${await hostOf(two)}/graphql${query}`, {
    headers: { accept: 'text/event-stream', ...member.headers },
  })
  t.match(await refused.json(), { errors: [{ extensions: { code: 'MEMBERSHIP_ENDED' } }] })
})

t.test('19.3 a write that waits while its membership ends is not made', async (t) => {
  type Write = [table: string, (member: Member) => Promise<unknown>, written: () => PromiseLike<{ length: number }>]
  const writes: Record<string, Write> = {
    'a post': [
      'posts', (member) => post(one, { query: 'mutation { createPost(input: { title: "Late", content: "x" }) { id } }' }, member),
      () => sql`select 1 from posts where title = 'Late'`,
    ],
    'a user': [
      'users', ({ headers }) => inject('PATCH', `/api/users/${admin.id}`, {
        headers: { ...headers, 'content-type': 'application/merge-patch+json' }, payload: { name: 'Late' },
      }),
      () => sql`select 1 from users where name = 'Late'`,
    ],
    'a new user': [
      'users', ({ headers }) => inject('POST', '/api/users', { headers, payload: { name: 'Late', email: 'late@example.com' } }),
      () => sql`select 1 from users where name = 'Late'`,
    ],
    'an upload': [
      'uploads', ({ headers }) => upload(one, 'Late', 'late.txt', headers).catch((error: Error) => error.message),
      () => sql`select 1 from uploads where filename = 'late.txt'`,
    ],
  }
  for (const [what, [table, write, written]] of Object.entries(writes)) {
    const member = await createMember('member', await one.createUser({ role: 'admin' }))
    const answer = await endDuring(member, lockTable(table), () => write(member), leave(member))
    t.match(JSON.stringify((answer as { body?: string }).body ?? answer), /MEMBERSHIP_ENDED/, what)
    t.equal((await written()).length, 0, what)
  }
})

t.test('19.3 of the writes of a batch, those of a membership that has ended are not made', async (t) => {
  const [member, other] = [await createMember(), await createMember()]
  const create = (user: Member, title: string) =>
    post(one, { query: `mutation { createPost(input: { title: "${title}", content: "x" }) { id } }` }, user)
  const [left, stayed] = await endDuring(member, lockTable('posts'), () =>
    Promise.all([create(member, 'Of the former'), create(other, 'Of the other')]), leave(member))
  t.match(left.errors, [{ extensions: { code: 'MEMBERSHIP_ENDED' } }])
  t.type(stayed.data.createPost.id, 'string')
  t.same(await sql`select title from posts where title like 'Of the %'`, [{ title: 'Of the other' }])
})

t.test('19.3 a change of the own name that waits while the membership ends is not made', async (t) => {
  const member = await createMember()
  const { statusCode, body } = await endDuring(member, (trx) => trx`select from users where id = ${member.id} for update`, () =>
    inject('PUT', `/api/users/${member.id}`, { headers: member.headers, payload: { name: 'Late', email: member.email } }),
  (trx) => trx`delete from memberships where id = ${member.membershipId}`)
  t.match([statusCode, body], [401, /MEMBERSHIP_ENDED/])
  t.same(await sql`select 1 from users where id = ${member.id} and name = 'Late'`, [])
})

t.test('19.3 a read that waits while its membership ends is not sent', async (t) => {
  const strict = await createUsher(t, { ...one.options, policy: { 'users:read': audiences.members } })
  const member = await createMember()
  const ask = (path: string) => strict.inject('GET', path, { headers: member.headers })
  const response = await endDuring(member, lockTable('users'), () => ask(`/api/users/${admin.id}`), async () => {
    await leaveNow(member)
    // The read must not be faster than the notification.
    await until('the node knows', async () => (await ask('/api/auth/sessions')).statusCode === 401)
  })
  t.match([response.statusCode, response.json()], [401, { code: 'MEMBERSHIP_ENDED' }])
})

t.test('19.3 a key of an organisation acts for it, and ends with the membership and with its role', async (t) => {
  const user = await one.createUser()
  const service = await createService(one, { email: `${randomUUID()}@example.com` })
  for (const [userId, creator] of [[user.id, user], [service, admin]] as const) {
    for (const end of [leaveNow, (member: Member) => setRole(member, 'admin')]) {
      const organizationId = await addOrganization()
      const membershipId = await join(userId, organizationId, 'editor')
      const payload = { name: 'Robot', organizationId }
      const path = userId === user.id ? '/api/auth/keys' : `/api/users/${userId}/keys`
      const created = await inject('POST', path, { headers: creator.headers, payload })
      t.match([created.statusCode, created.json()], [201, { organizationId }])
      const listed = (await inject('GET', path, { headers: creator.headers })).json() as { id: string, organizationId: string }[]
      t.equal(listed.find(({ id }) => id === created.json().id)!.organizationId, organizationId)
      const key = { headers: { authorization: `Bearer ${created.json().key}` } }
      t.equal((await ask(two, key)).statusCode, 200)
      await end({ ...user, organizationId, membershipId })
      t.match(await rejection(two, key), [401, CHALLENGE, { code: 'INVALID_TOKEN' }])
    }
  }
  const { organizationId } = await createMember()
  for (const id of [organizationId, randomUUID(), 'x']) {
    const response = await inject('POST', '/api/auth/keys', { headers: user.headers, payload: { name: 'X', organizationId: id } })
    t.match([response.statusCode, response.json()], [404, { code: 'ORGANIZATION_NOT_FOUND' }])
  }
})

t.test('19.3 the node that has ended a membership rejects its API key at once', async (t) => {
  // The notification of the end of the key takes a moment longer.
  for (let round = 0; round < 20; round++) {
    const session = await one.createUser()
    const member = await createMember('member', session)
    await join(admin.id, member.organizationId, 'owner')
    const { headers } = await createKey(one, session, { name: 'Robot', organizationId: member.organizationId })
    t.equal((await ask(one, { headers })).statusCode, 200)
    const path = `/api/organizations/${member.organizationId}/members/${member.id}`
    t.equal((await inject('DELETE', path, { headers: admin.headers })).statusCode, 204)
    t.match((await ask(one, { headers })).json(), { code: 'INVALID_TOKEN' })
  }
})

t.test('19.3 without the option, a key of an organisation is rejected', async (t) => {
  const { organizations, ...rest } = one.options
  const without = await createUsher(t, rest)
  const member = await createMember()
  const { headers } = await createKey(one, member, { organizationId: member.organizationId })
  t.equal((await ask(one, { headers })).statusCode, 200)
  t.equal((await ask(without, { headers })).statusCode, 401)
})

t.test('19.3 a route of the host gets the organisation, and reads nothing from the database', async (t) => {
  const statements: string[] = []
  const client = postgres(
    await testDatabaseUrl(), { max: 4, onnotice: () => {}, debug: (_, text) => { statements.push(text) } }
  )
  t.teardown(() => client.end())
  const host = Fastify({ pluginTimeout: 0, forceCloseConnections: true })
  t.teardown(() => host.close())
  const schema = uniqueSchema(t.name)
  const options = { sql: client, schema, uploadsDir: temporaryFolder(), organizations: true, admin: one.options.admin! }
  await host.register(usher, options)
  const seen: (Actor | null)[] = []
  host.get('/mine', { onRequest: host.usher.authenticate }, async ({ actor }) => { seen.push(actor); return actor })
  const mounted = await withUsers(host, options)
  const own = openSql(t, { options: { databaseUrl: await testDatabaseUrl(), schema } })
  const user = await mounted.createUser()
  const [id, membershipId] = [randomUUID(), randomUUID()]
  await own`insert into organizations (id, name, slug) values (${id}, 'Acme', 'acme')`
  await own`insert into memberships (id, organization_id, user_id, role) values (${membershipId}, ${id}, ${user.id}, 'owner')`
  const issue = async () => withToken(user, (await askToken(user, { organizationId: id }, mounted)).json().token)
  const member = await issue()
  const mine = async () => (await host.inject({ url: '/mine', headers: member.headers })).statusCode
  t.equal(await mine(), 200)
  t.strictSame(seen[0]!.organization, { id, role: 'owner', membershipId })
  t.ok(Object.isFrozen(seen[0]!.organization))
  await host.inject({ url: '/mine', headers: user.headers })
  t.equal(seen[1]!.organization, null)

  // The start of the app may still send statements, and if the machine stalls for a tenth of a second, the node reads.
  const withoutStatement = () => until('fifty requests without a statement', async () => {
    statements.length = 0
    for (let count = 0; count < 50; count++) {
      await mine()
      await setImmediate()
    }
    return statements.length === 0
  })
  await withoutStatement()
  await own`delete from memberships where id = ${membershipId}`
  await until('it is rejected', async () => await mine() === 401)
  await withoutStatement()
})

t.test('19.3 a download ends with the membership, and one of another token of the session does not', async (t) => {
  const strict = await createUsher(t, { ...one.options, policy: { 'uploads:read': audiences.members } })
  const session = await one.createUser()
  const member = await createMember('member', session)
  const size = 10_000_000
  const { fileUrl } = await upload(one, Buffer.alloc(size), 'large.bin', session.headers)
  const port = Number((await hostOf(strict)).split(':')[1])
  const downloads = await Promise.all([member, session].map(async ({ token }) => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    t.teardown(() => socket.destroy())
    socket.write(`GET ${fileUrl} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\nconnection: close\r\n\r\n`)
    const [first] = await once(socket, 'data')
    socket.pause()
    return { socket, received: first.length as number }
  }))
  await leaveNow(member)
  await rejection(strict, member)
  const [ended, other] = await Promise.all(downloads.map(async ({ socket, received }) => {
    socket.on('data', ({ length }) => { received += length }).resume()
    await once(socket, 'close')
    return received
  }))
  t.ok(ended! < size, `${ended} bytes`)
  t.ok(other! > size, `${other} bytes`)
})

t.test('19.3 events are not shared between tokens of a user for an organisation and for none', async (t) => {
  const strict = await createUsher(t, {
    ...one.options, policy: { 'users:read-email': (reader) => reader !== null && reader.organization !== null },
  })
  const session = await one.createUser()
  const member = await createMember('member', session)
  const query = '?query=subscription { postCreated { author { email } } }'
  const [inside, outside] = await Promise.all([member, session].map(({ headers }) =>
    openEvents(t, strict, { query, headers })))
  await createPost(strict, member)
  t.same(await inside!.answers(1), [{ data: { postCreated: { author: { email: member.email } } } }])
  t.same(await outside!.answers(1), [{ data: { postCreated: { author: { email: null } } } }])
})
