import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import t from 'tap'
import { audiences, type Policy } from '../../app.ts'
import { actorOf } from '../helpers/actor.ts'
import { createUsher, sharedUsher, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { openEvents } from '../helpers/events.ts'
import { createPost, openSocket, post } from '../helpers/graphql.ts'
import { sharedInbox } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { upload } from '../helpers/uploads.ts'
import { until } from '../helpers/until.ts'

const HIDDEN = { email: null, emailVerified: null, disabled: null }
const FIELDS = 'id email emailVerified disabled'

const everybody = () => true
// Users may change and create others, whose addresses they may not see.
const generous: Partial<Policy> = {
  'users:read-email': audiences.owners, 'users:replace': everybody, 'users:create': everybody,
}

interface Person { id: string, email?: string | null, emailVerified?: boolean | null, disabled?: boolean | null }

/** The readers of a test: nobody, the owner of what is read, another user, and an admin. */
async function peopleOf (usher: TestUsher) {
  const [owner, another] = [await usher.createUser(), await usher.createUser()]
  return { owner, readers: { nobody: undefined, owner, another, admin: usher.admin } }
}

/** Every way to read a user: each returns what it shows of them. */
const paths: Record<string, (usher: TestUsher, reader: LoggedIn | undefined, id: string) => Promise<Person>> = {
  async 'GET /api/users/{id}' ({ inject }, reader, id) {
    return (await inject('GET', `/api/users/${id}`, { headers: reader?.headers })).json()
  },
  async 'GET /api/users, version 1' ({ inject }, reader, id) {
    return (await inject('GET', '/api/users', { headers: reader?.headers })).json()
      .find((user: Person) => user.id === id)
  },
  async 'GET /api/users, version 2' ({ inject }, reader, id) {
    const headers = { ...reader?.headers, accept: 'application/vnd.api.v2+json' }
    return (await inject('GET', '/api/users', { headers })).json().data.find((user: Person) => user.id === id)
  },
  async 'GET /api/users?role=user' ({ inject }, reader, id) {
    return (await inject('GET', '/api/users?role=user', { headers: reader?.headers })).json()
      .find((user: Person) => user.id === id)
  },
  async 'query user' (usher, reader, id) {
    return (await post(usher, { query: `{ user(id: "${id}") { ${FIELDS} } }` }, reader)).data.user
  },
  async 'query users' (usher, reader, id) {
    const { data } = await post(usher, { query: `{ users { edges { node { ${FIELDS} } } } }` }, reader)
    return data.users.edges.find(({ node }: { node: Person }) => node.id === id).node
  },
  async 'query posts, three levels deep' (usher, reader, id) {
    const query =
      `{ posts(authorId: "${id}", first: 1) { nodes { author { posts(first: 1) { author { ...Shown } } } } } } fragment Shown on User { ${FIELDS} }`
    return (await post(usher, { query }, reader)).data.posts.nodes[0].author.posts[0].author
  },
  async 'a query on a socket' (usher, reader, id) {
    const socket = await (await openSocket(t, usher)).init(reader?.headers)
    const { data } = await socket.run(`{ user(id: "${id}") { ${FIELDS} } }`)
    socket.socket.close()
    return data.user
  },
}

for (const audience of ['anyone', 'members', 'owners'] as const) {
  t.test(`11.1 addresses that ${audience} may see are hidden from all others, by every path`, async (t) => {
    const usher = await sharedUsher({ policy: { 'users:read-email': audiences[audience] } })
    const { owner, readers } = await peopleOf(usher)
    await createPost(usher, owner)
    const sees = { nobody: audience === 'anyone', owner: true, another: audience !== 'owners', admin: true }
    const account = { email: owner.email, emailVerified: false, disabled: false }
    for (const [path, read] of Object.entries(paths)) {
      // All readers ask at the same time, so that they share statements and pages.
      const shown = await Promise.all(Object.values(readers).map((reader) => read(usher, reader, owner.id)))
      for (const [index, name] of (Object.keys(readers) as (keyof typeof readers)[]).entries()) {
        const { id, ...user } = shown[index]!
        t.equal(id, owner.id)
        if (path.startsWith('GET')) t.equal('email' in user, sees[name], `${name}, ${path}`)
        t.match({ ...HIDDEN, ...user }, sees[name] ? account : HIDDEN, `${name}, ${path}`)
      }
    }
  })
}

t.test('11.1 subscribers who may not see the same get different events of the same subscription', async (t) => {
  const usher = await sharedUsher({ policy: { 'users:read-email': audiences.owners } })
  const { owner, readers } = await peopleOf(usher)
  const query = `subscription { postCreated { title author { ${FIELDS} posts(first: 1) { author { email } } } } }`
  const all = Object.values(readers)
  const sockets = await Promise.all(all.flatMap((reader) => [reader, reader]).map(async (reader) => {
    const socket = await (await openSocket(t, usher)).init(reader?.headers)
    socket.start('posts', query)
    await socket.settle()
    return socket
  }))
  const streams = await Promise.all(all.map((reader) =>
    openEvents(t, usher, { method: 'POST', body: JSON.stringify({ query }), headers: reader?.headers })))
  await createPost(usher, owner)
  const expected = [null, owner.email, null, owner.email]
  for (const [index, email] of expected.entries()) {
    const events = [
      ...await Promise.all(
        sockets.slice(index * 2, index * 2 + 2).map(async (socket) => (await socket.next()).payload)
      ),
      ...await streams[index]!.answers(1),
    ]
    for (const event of events) {
      t.equal(event!.data.postCreated.author.email, email)
      t.equal(event!.data.postCreated.author.posts[0].author.email, email)
    }
  }
})

t.test('11.1 responses to a write and about the own account hide nothing of the own account, and nothing else shows an address', async (t) => {
  const usher = await sharedUsher({ policy: generous })
  const { inject, login } = usher
  const { owner, readers: { another } } = await peopleOf(usher)
  const { token, user } =
    (await inject('POST', '/api/auth/login', { payload: { email: owner.email, password: owner.password } })).json()
  t.equal(user.email, owner.email)
  t.notMatch(JSON.stringify(decodeJwt(token)), owner.email)
  t.equal((await inject('GET', '/api/protected', { headers: owner.headers })).json().user.email, owner.email)
  t.equal(
    (await inject('POST', '/api/auth/refresh', { headers: { cookie: (await login(owner)).cookie } })).json().user.email,
    owner.email
  )
  t.equal((await post(usher, { query: '{ me { email } }' }, owner)).data.me.email, owner.email)

  const path = `/api/users/${owner.id}`
  t.equal((await inject('PATCH', path, { headers: owner.headers, payload: { name: 'A' } })).json().email, owner.email)
  for (const payload of [{ name: 'B' }, {}]) {
    t.notOk('email' in (await inject('PATCH', path, { headers: another.headers, payload })).json())
  }
  t.notMatch((await inject('GET', '/api/audit', { headers: usher.admin.headers })).body, '@example.com')
})

t.test('11.1 where addresses are hidden, a user who may create users does not learn which are taken', async (t) => {
  const usher = await sharedUsher({ policy: generous })
  const { inject, admin, app } = usher
  const [user, other] = [await usher.createUser(), await usher.createUser()]
  const free = { name: 'Free', email: `${randomUUID()}@example.com` }
  const taken = { name: 'Taken', email: other.email }
  const error = 'You may not create users, because you may not see the addresses of others'
  for (const payload of [free, taken, { ...taken, password: 'horse battery staple' }, {}]) {
    for (const key of [undefined, 'one-key']) {
      const headers = { ...user.headers, ...key !== undefined && { 'idempotency-key': key } }
      const response = await inject('POST', '/api/users', { headers, payload })
      t.strictSame([response.statusCode, response.json()], [403, { error, code: 'EMAILS_HIDDEN' }])
    }
  }
  t.equal((await inject('GET', `/api/users?email=${free.email}`, { headers: admin.headers })).json().length, 0)
  for (const [payload, status] of [[taken, 409], [free, 201]] as const) {
    t.equal(
      (await inject('POST', '/api/users', { headers: admin.headers, payload })).statusCode, status, 'for an admin'
    )
  }
  const actor = await actorOf(usher, user)
  for (const given of [free, taken]) {
    await t.rejects(app.usher.users.create(given, { actor }), { statusCode: 403, code: 'EMAILS_HIDDEN' })
  }
  await t.rejects(app.usher.users.create(taken), { statusCode: 409, code: 'EMAIL_TAKEN' }, 'the host sees addresses')
})

nightly('11.1 a user who may change others does not learn whether a guess of a hidden address is right', async (t) => {
  for (const options of [{ policy: generous }, { policy: generous, mailer: sharedInbox.mailer }]) {
    const usher = await sharedUsher(options)
    const { owner, readers: { another } } = await peopleOf(usher)
    const change = ({ headers }: LoggedIn, email: string) =>
      usher.inject('PATCH', `/api/users/${owner.id}`, { headers, payload: { email } })
    const guess = async (email: string) => {
      const response = await change(another, email)
      return [response.statusCode, { ...response.json(), updatedAt: '' }]
    }
    t.strictSame(await guess(owner.email), await guess(`${randomUUID()}@example.com`))
    t.equal((await change(owner, owner.email)).statusCode, 200, 'the owner knows it')
  }
})

const members: Partial<Policy> = {
  'users:list': audiences.members,
  'users:read': audiences.members,
  'posts:read': audiences.members,
  'uploads:read': audiences.members,
}

nightly('11.1 a rejected read gets 401 without a token and 403 with one', async (t) => {
  const usher = await createUsher(t, { policy: { ...members, 'uploads:read': audiences.owners } })
  const { inject } = usher
  const { owner, readers } = await peopleOf(usher)
  const postId = await createPost(usher, owner)
  const file = await upload(usher, 'Text', undefined, owner.headers)
  const unknown = '/api/uploads/00000000-0000-7000-8000-000000000000'
  const statuses = async (path: string) => Promise.all(Object.values(readers)
    .map(async (reader) => (await inject('GET', path, { headers: reader?.headers })).statusCode))

  t.same(await statuses('/api/users'), [401, 200, 200, 200])
  t.same(await statuses(`/api/users/${owner.id}`), [401, 200, 200, 200])
  t.same(await statuses('/api/users?limit=none'), [401, 400, 400, 400], 'before the query is validated')
  t.same(await statuses(file.fileUrl), [401, 200, 403, 200])
  t.same(await statuses(unknown), [401, 403, 403, 404], 'who may not read it does not learn whether it exists')
  const { paths } = (await inject('GET', '/docs/json')).json()
  for (const path of ['/api/users', '/api/users/{id}', '/api/uploads/{id}']) {
    t.same(paths[path].get.security, [{ bearer: [] }], path)
  }
  const { headers } = await inject('GET', '/api/users')
  t.equal(headers['www-authenticate'], 'Bearer')
  t.equal(
    (await inject('GET', '/api/users', { headers: { authorization: 'Bearer x' } })).headers['www-authenticate'],
    'Bearer error="invalid_token"'
  )
  t.equal((await inject('GET', file.fileUrl, { headers: owner.headers })).headers['cache-control'], 'private, no-cache')
  t.equal((await inject('HEAD', file.fileUrl)).statusCode, 401)

  const queries = [
    '{ users { nodes { id } } }', `{ user(id: "${owner.id}") { id } }`, `{ post(id: "${postId}") { id } }`,
    '{ posts { nodes { id } } }',
  ]
  for (const query of queries) {
    const { data, errors } = await post(usher, { query })
    t.notOk(data && Object.values(data).some(Boolean), query)
    t.equal(errors![0]!.extensions.code, 'UNAUTHENTICATED', query)
    t.notOk((await post(usher, { query }, owner)).errors, query)
  }
  const socket = await (await openSocket(t, usher)).init()
  t.equal((await socket.run('subscription { postCreated { id } }')).errors![0]!.extensions.code, 'UNAUTHENTICATED')
  t.equal((await socket.run(queries[0]!)).errors![0]!.extensions.code, 'UNAUTHENTICATED')
  const events = await openEvents(
    t, usher, { method: 'POST', body: JSON.stringify({ query: 'subscription { postCreated { id } }' }) }
  )
  t.equal((await events.answers(1))[0]!.errors![0]!.extensions.code, 'UNAUTHENTICATED')
})

t.test('11.1 a rule of the host decides by reader and owner, and a rejected read of a user is logged', async (t) => {
  const usher = await createUsher(t, {
    policy: {
      'posts:read': audiences.owners,
      'users:read': (reader, { ownerId }) => reader !== null && (reader.role === 'admin' || reader.id === ownerId),
    },
  })
  const { inject, admin } = usher
  const { owner, readers: { another } } = await peopleOf(usher)
  const id = await createPost(usher, owner)
  const read = async (query: string, reader?: LoggedIn) => {
    const { errors } = await post(usher, { query }, reader)
    return errors?.[0]!.extensions.code ?? 'yes'
  }
  for (const query of [
    `{ post(id: "${id}") { id } }`,
    `{ posts(authorId: "${owner.id.toUpperCase()}") { nodes { id } } }`,
    `{ user(id: "${owner.id.toUpperCase()}") { id } }`,
  ]) {
    t.same(
      [await read(query), await read(query, owner), await read(query, another), await read(query, admin)],
      ['UNAUTHENTICATED', 'yes', 'FORBIDDEN', 'yes'],
      query
    )
  }
  const everything = '{ posts { nodes { id } } }'
  t.same([await read(everything, owner), await read(everything, admin)], ['FORBIDDEN', 'yes'])
  t.equal(
    await read(`{ post(id: "${another.id}") { id } }`, owner),
    'FORBIDDEN',
    'who may not read it does not learn whether it exists'
  )
  t.equal((await inject('GET', `/api/users/${owner.id}`, { headers: another.headers })).statusCode, 403)
  const entries = async () =>
    (await inject('GET', `/api/audit?user=${another.id}&action=access.denied`, { headers: admin.headers })).json()
  await until('the rejection is in the account log', async () => (await entries()).length > 0)
  t.equal((await entries()).length, 1)
  const nested = await post(usher, { query: '{ posts { nodes { author { id } } } }' }, admin)
  t.notOk(nested.errors)
})
