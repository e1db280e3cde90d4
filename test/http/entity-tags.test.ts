import { Type } from '@sinclair/typebox'
import Fastify from 'fastify'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import usherPlugin, { audiences } from '../../app.ts'
import { createUsher, sharedUsher, withUsers, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { mountOptions } from '../helpers/host.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { upload } from '../helpers/uploads.ts'

const STRONG = /^"[\x21\x23-\x7e]+"$/
const UNKNOWN = '018f0000-0000-7000-8000-000000000000'
// The headers that a 304 repeats.
const KEPT = ['etag', 'cache-control', 'vary', 'link', 'content-security-policy']

const one = await sharedUsher()
const two = await createUsher(t, one.options)
const { inject, admin } = one
const sql = openSql(t, one)

/** Returns the entity tag of a response with the given status. */
async function tagOf (
  t: Test, { inject }: Pick<TestUsher, 'inject'>, path: string, headers: object = {}
): Promise<string> {
  const response = await inject('GET', path, { headers: { ...headers } })
  t.equal(response.statusCode, 200, path)
  t.match(response.headers.etag, STRONG, path)
  return response.headers.etag as string
}

/** The paths that have entity tags, and what the requests need. */
async function pathsOf (usher: TestUsher): Promise<[path: string, headers: object][]> {
  const { admin, prefix } = usher
  const { fileUrl } = await upload(usher, 'Words')
  return [
    [`/api/users/${admin.id}`, {}],
    [fileUrl.slice(prefix.length), {}],
    ['/api/audit', admin.headers],
    ['/api/audit?limit=1', admin.headers],
    ['/api/auth/sessions', admin.headers],
    [`/api/users/${admin.id}/sessions`, admin.headers],
    ['/.well-known/jwks.json', {}],
    ['/docs', {}],
    ['/docs/json', {}],
    ['/docs/schema.graphql', {}],
  ]
}

t.test('10.1 every record and page has a strong entity tag, which a client revalidates with 304', async (t) => {
  for (const [path, headers] of await pathsOf(one)) {
    const get = (more: object = {}, method: 'GET' | 'HEAD' = 'GET') =>
      inject(method, path, { headers: { ...headers, ...more } })
    const first = await get()
    const { etag } = first.headers as { etag: string }
    t.equal(first.statusCode, 200, path)
    t.match(etag, STRONG, path)
    t.equal(first.headers['cache-control'], 'private, no-cache', path)
    t.equal((await get()).headers.etag, etag, `${path} has the same tag again`)

    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, `"a,b",W/"c" ,W/${etag}`, '*', ` ${etag} `]) {
      for (const method of ['GET', 'HEAD'] as const) {
        const { statusCode, body, headers } = await get({ 'if-none-match': known }, method)
        const { 'content-length': length } = first.headers
        t.strictSame(
          { statusCode, body, kept: KEPT.map((name) => headers[name]), length: headers['content-length'] ?? length },
          { statusCode: 304, body: '', kept: KEPT.map((name) => first.headers[name]), length },
          `${method} ${path} ${known}`
        )
      }
    }
    for (const unknown of [
      '"other"', etag.slice(1, -1), `${etag.slice(0, -1)}`, `w/${etag}`, 'W/', '', ',', '"*"', '"', `"x${etag}`,
    ]) {
      const response = await get({ 'if-none-match': unknown })
      t.strictSame([response.statusCode, response.body], [200, first.body], `${path} ${unknown}`)
    }
  }
})

t.test('10.1 a strong comparison decides If-Match, before If-None-Match', async (t) => {
  for (const [path, headers] of await pathsOf(one)) {
    const etag = await tagOf(t, one, path, headers)
    const statusOf = async (more: object) =>
      (await inject('GET', path, { headers: { ...headers, ...more } })).statusCode
    t.equal(await statusOf({ 'if-match': `"other", ${etag}` }), 200, path)
    t.equal(await statusOf({ 'if-match': '*' }), 200, path)
    t.equal(await statusOf({ 'if-match': etag, 'if-none-match': etag }), 304, path)
    for (const other of ['"other"', `W/${etag}`, 'malformed']) {
      const response = await inject('GET', path, { headers: { ...headers, 'if-match': other, 'if-none-match': '*' } })
      t.strictSame([response.statusCode, response.json().code], [412, 'PRECONDITION_FAILED'], `${path} ${other}`)
    }
  }
})

nightly('10.1 HEAD has the status and the headers of GET, also if the host adds no such routes', async (t) => {
  const app = Fastify({ pluginTimeout: 0, exposeHeadRoutes: false })
  t.teardown(() => app.close())
  const options = await mountOptions(t)
  await app.register(usherPlugin, options)
  const usher = await withUsers(app, options)
  await usher.login(options.admin as LoggedIn)
  for (const [path, headers] of await pathsOf(usher)) {
    const get = await usher.inject('GET', path, { headers: { ...headers } })
    const head = await usher.inject('HEAD', path, { headers: { ...headers } })
    const { date, connection, 'transfer-encoding': encoding, ...expected } = get.headers
    t.strictSame([head.statusCode, head.body], [200, ''], path)
    t.match(head.headers, expected, path)
  }
  t.match(
    (await usher.inject('HEAD', '/api/audit?limit=1', { headers: usher.admin.headers })).headers.link, 'rel="next"'
  )
  t.equal((await usher.inject('HEAD', `/api/users/${UNKNOWN}`)).statusCode, 404)
})

t.test('10.1 a tag is the same on every node', async (t) => {
  const user = await one.createUser()
  for (const [path, headers] of [...await pathsOf(one), [`/api/users/${user.id}`, {}] as [string, object]]) {
    // Files of uploads are in the folder of the first node.
    if (path.includes('/uploads/')) continue
    const etag = await tagOf(t, one, path, headers)
    t.equal(await tagOf(t, two, path, headers), etag, path)
    t.equal((await two.inject('GET', path, { headers: { ...headers, 'if-none-match': etag } })).statusCode, 304, path)
  }
})

t.test('10.1 every change of a user changes the tag, whoever makes it', async (t) => {
  const mails = createMailer()
  const usher = await createUsher(t, { mailer: mails.mailer, publicUrl: 'http://localhost' })
  const sql = openSql(t, usher)
  const { id, headers } = await usher.createUser()
  const path = `/api/users/${id}`
  let etag = await tagOf(t, usher, path)
  const seen = new Set([etag])
  const changes = async (how: string) => {
    t.equal((await usher.inject('GET', path, { headers: { 'if-none-match': [...seen].join() } })).statusCode, 200, how)
    etag = await tagOf(t, usher, path)
    t.notOk(seen.has(etag), how)
    seen.add(etag)
  }
  const email = 'ada@example.com'
  const put = await usher.inject('PUT', path, { headers, payload: { name: 'Ada', email } })
  await changes('PUT')
  t.equal(put.headers.etag, etag, 'PUT returns the new tag')
  const patch = await usher.inject('PATCH', path, { headers, payload: { name: 'Ada Lovelace' } })
  await changes('PATCH')
  t.equal(patch.headers.etag, etag, 'PATCH returns the new tag')
  await usher.inject('PATCH', path, { headers: usher.admin.headers, payload: { role: 'admin' } })
  await changes('another role')
  await sql`update users set name = 'Augusta' where id = ${id}`
  await changes('psql')
  await usher.inject('POST', `${path}/email-verification`, { headers: usher.admin.headers })
  const token = await mails.token(email, 2)
  const payload = { token, password: 'a password of tomorrow' }
  t.equal((await usher.inject('POST', '/api/auth/email-verification/confirm', { payload })).statusCode, 204)
  await changes('a verified address')
  const unchanged = await usher.inject('PATCH', path, { headers: usher.admin.headers, payload: {} })
  t.strictSame(
    [unchanged.statusCode, unchanged.headers.etag, await tagOf(t, usher, path)], [200, etag, etag], 'without a change'
  )
})

t.test('10.1 creating a user or an upload returns the tag that GET returns', async (t) => {
  const created = await inject(
    'POST', '/api/users', { headers: admin.headers, payload: { name: 'New', email: 'new@example.com' } }
  )
  t.equal(created.headers.etag, await tagOf(t, one, created.headers.location as string))
  const { fileUrl, sha256 } = await upload(one, 'Words')
  t.equal(await tagOf(t, one, fileUrl), `"${sha256}"`)
})

nightly('10.1 an unknown user is 404 and a forbidden one 401 or 403, whatever the client has', async (t) => {
  for (const id of [UNKNOWN, 'x', '%00', admin.id.slice(1)]) {
    for (const known of ['*', '"x"', await tagOf(t, one, `/api/users/${admin.id}`)]) {
      const response = await inject('GET', `/api/users/${id}`, { headers: { 'if-none-match': known } })
      t.strictSame([response.statusCode, response.json().code], [404, 'USER_NOT_FOUND'], `${id} ${known}`)
    }
    t.equal((await inject('GET', `/api/users/${id}`, { headers: { 'if-match': '*' } })).statusCode, 404)
  }
  t.equal(
    (await inject('GET', `/api/users/${admin.id.toUpperCase()}`, { headers: { 'if-none-match': '*' } })).statusCode, 304
  )
  const closed = await createUsher(t, { policy: { 'users:read': audiences.owners } })
  const [user, another] = [await closed.createUser(), await closed.createUser()]
  const get = (headers: object) =>
    closed.inject('GET', `/api/users/${user.id}`, { headers: { 'if-none-match': '*', ...headers } })
  t.equal((await get({})).statusCode, 401)
  t.equal((await get(another.headers)).statusCode, 403)
  t.equal((await get(user.headers)).statusCode, 304)
  for (const path of ['/api/auth/sessions', '/api/audit', `/api/users/${admin.id}/sessions`]) {
    const response = await inject('GET', path, { headers: { 'if-none-match': '*' } })
    t.strictSame(
      [response.statusCode, response.headers['cache-control'], response.headers.etag],
      [401, 'no-store', undefined],
      path
    )
  }
})

nightly('10.1 readers who see something else of a user get another tag, and Vary says why', async (t) => {
  const userFields = Type.Object({
    secret: Type.Optional(Type.String({ 'x-read': 'admin', maxLength: 10 })),
    own: Type.Optional(Type.String({ 'x-read': 'owner', maxLength: 10 })),
  })
  const usher = await createUsher(t, { policy: { 'users:read-email': audiences.members }, userFields })
  const [owner, another, third] = [await usher.createUser(), await usher.createUser(), await usher.createUser()]
  const path = `/api/users/${owner.id}`
  const tags = []
  for (const reader of [undefined, owner, another, usher.admin]) {
    const { headers } = await usher.inject('GET', path, { headers: { ...reader?.headers } })
    t.match(headers.vary, /\bAuthorization\b/)
    tags.push(headers.etag as string)
    const again = await usher.inject('GET', path, { headers: { ...reader?.headers, 'if-none-match': tags.join() } })
    t.strictSame([again.statusCode, again.headers.vary, again.headers.etag], [304, headers.vary, headers.etag])
  }
  t.equal(new Set(tags).size, 4)
  t.equal(await tagOf(t, usher, path, third.headers), tags[2], 'readers who see the same have the same')
  t.equal((await usher.inject('GET', path, { headers: { 'if-none-match': tags.slice(1).join() } })).statusCode, 200)
  const patched = await usher.inject('PATCH', path, { headers: usher.admin.headers, payload: { secret: 'x' } })
  t.equal(
    patched.headers.etag, await tagOf(t, usher, path, usher.admin.headers), 'a change returns the tag of its actor'
  )

  // The same rows, with another default.
  const preset =
    Type.Object({ ...userFields.properties, own: Type.String({ 'x-read': 'owner', maxLength: 10, default: 'x' }) })
  const later = await createUsher(t, { ...usher.options, userFields: preset })
  t.not(await tagOf(t, later, path, owner.headers), await tagOf(t, usher, path, owner.headers))
  t.equal(await tagOf(t, later, path, another.headers), await tagOf(t, usher, path, another.headers))
  t.equal(
    (await inject('GET', `/api/users/${admin.id}`)).headers.vary, undefined, 'all readers see the same by default'
  )
})

t.test('10.1 a 304 of a user reads the version only, and shares the statement', async (t) => {
  const statements: string[] = []
  const client = postgres(
    await testDatabaseUrl(), { max: 4, onnotice: () => {}, debug: (_, text) => { statements.push(text) } }
  )
  t.teardown(() => client.end())
  const { inject, createUser } = await createUsher(t, { sql: client, databaseUrl: undefined })
  const users = await Promise.all(Array.from({ length: 20 }, () => createUser()))
  const tags = await Promise.all(
    users.map(async ({ id }) => (await inject('GET', `/api/users/${id}`)).headers.etag as string)
  )
  statements.length = 0
  const responses = await Promise.all(
    users.map(({ id }, index) => inject('GET', `/api/users/${id}`, { headers: { 'if-none-match': tags[index] } }))
  )
  t.strictSame(new Set(responses.map(({ statusCode }) => statusCode)), new Set([304]))
  const reads = statements.filter((text) => text.includes('"users"'))
  t.equal(reads.some((text) => text.includes('email')), false)
  t.ok(reads.length > 0 && reads.length < 20, `${reads.length} statements`)
})

t.test('10.1 the tag of a list of sessions changes with each session, and differs between them', async (t) => {
  const user = await one.createUser()
  const path = `/api/users/${user.id}/sessions`
  const tags = new Set<string>()
  const differs = async (how: string, headers = user.headers) => {
    const etag = await tagOf(t, one, path, headers)
    t.notOk(tags.has(etag), how)
    tags.add(etag)
  }
  await differs('at first')
  const second = await one.login(user)
  await differs('another session')
  await differs('the same sessions, seen from the other one', second.headers)
  await differs('the same sessions, seen by an admin', admin.headers)
  await inject('POST', '/api/auth/refresh', { headers: { cookie: second.cookie } })
  await differs('a refresh')
  await sql`update sessions set address = '192.0.2.1' where user_id = ${user.id}`
  await differs('psql')
  await sql`update sessions set expires_at = now() where user_id = ${user.id} and id <> ${JSON.parse(atob(user.token.split('.')[1]!)).sid}`
  await differs('an expired session')
})

t.test('10.1 the tag of a page of the account log changes with its entries, and differs between readers', async (t) => {
  const user = await one.createUser()
  const mine = `/api/audit?user=${user.id}&limit=3`
  const pageOfTwo = `/api/audit?user=${user.id}&limit=2`
  const first = await tagOf(t, one, mine, user.headers)
  t.not(
    await tagOf(t, one, mine, admin.headers),
    first,
    'the owner does not see the address of the admin who has created the account'
  )
  await one.login(user)
  const second = await tagOf(t, one, mine, user.headers)
  t.not(second, first)
  await sql`update audit set user_agent = 'psql' where user_id = ${user.id}`
  const third = await tagOf(t, one, mine, user.headers)
  t.not(third, second)
  const page = await inject('GET', pageOfTwo, { headers: user.headers })
  t.match(page.headers.link, 'rel="next"')
  await sql`delete from audit where user_id = ${user.id} and action = 'user.create'`
  const last = await inject(
    'GET', pageOfTwo, { headers: { ...user.headers, 'if-none-match': page.headers.etag as string } }
  )
  t.strictSame(
    [last.statusCode, last.headers.link, last.json()],
    [200, undefined, page.json()],
    'the same entries, without a next page'
  )
})

nightly('10.1 the tag of the key set changes with the keys', async (t) => {
  const usher = await createUsher(t)
  const before = await tagOf(t, usher, '/.well-known/jwks.json')
  await openSql(t, usher)`delete from signing_keys`
  await until('there is another key', async () =>
    (await usher.inject('GET', '/.well-known/jwks.json', { headers: { 'if-none-match': before } })).statusCode === 200)
  t.not(await tagOf(t, usher, '/.well-known/jwks.json'), before)
})

t.test('10.1 a long list of tags costs little', async (t) => {
  const tags = `${'"x",W/"y",,'.repeat(100_000)}${await tagOf(t, one, `/api/users/${admin.id}`)}`
  t.equal((await inject('GET', `/api/users/${admin.id}`, { headers: { 'if-none-match': tags } })).statusCode, 304)
})

t.test('12.1 operations of the host get no version of a row', async (t) => {
  const user = await one.createUser()
  t.notOk('rowVersion' in await one.app.usher.users.get(user.id))
  t.notOk('rowVersion' in await one.app.usher.users.update(user.id, { name: 'Another' }))
  const post = await one.app.usher.posts.create({ authorId: user.id, title: 'A post', content: '' })
  t.notOk('rowVersion' in post)
  t.notOk('rowVersion' in await one.app.usher.posts.get(post.id))
  t.notOk((await inject('GET', `/api/users/${user.id}`)).body.includes('ersion'))
})
