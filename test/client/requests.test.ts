import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { createUsherClient, unwrap, type UsherClientOptions } from '../../client/index.ts'
import { graphql } from '../../client/posts.ts'
import { createKey } from '../helpers/api-keys.ts'
import { createUsher } from '../helpers/app.ts'
import { createCuttingProxy } from '../helpers/cutting-proxy.ts'

const usher = await createUsher(t)
const proxy = await createCuttingProxy(t, await usher.app.listen({ port: 0, host: '127.0.0.1' }))

async function createClient (options: UsherClientOptions = {}) {
  const exchanges: { request: Request, status: number | undefined }[] = []
  const client = createUsherClient({
    baseUrl: proxy.url,
    retry: { baseMs: 1 },
    fetch: async (request) => {
      const exchange: (typeof exchanges)[number] = { request, status: undefined }
      exchanges.push(exchange)
      const response = await fetch(request)
      exchange.status = response.status
      return response
    },
    ...options,
  })
  await client.login(usher.admin)
  return { client, exchanges, statuses: () => exchanges.splice(0).map(({ status }) => status) }
}

const userOf = (id: string) => ({ params: { path: { id } } })

t.test('15.4 reads are revalidated by their entity tag, and every caller gets a copy', async (t) => {
  const { client, statuses } = await createClient()
  const member = await usher.createUser({ name: 'Ada' })
  const read = () => unwrap(client.get('/api/users/{id}', userOf(member.id)))
  const first = await read()
  first.name = 'changed by the caller'
  const second = await read()
  t.equal(second.name, 'Ada')
  t.strictSame(statuses(), [200, 200, 304])

  await usher.inject('PATCH', `/api/users/${member.id}`, { headers: usher.admin.headers, payload: { name: 'Grace' } })
  t.equal((await read()).name, 'Grace')
  t.strictSame(statuses(), [200])
  const { response } = await client.get('/api/users/{id}', { ...userOf(member.id), headers: { 'If-None-Match': '*' } })
  t.equal(response.status, 304, 'the caller\'s own condition is kept')
})

t.test('15.4 responses are kept for one user only, and up to limits', async (t) => {
  const { client, statuses } = await createClient({ cache: { entries: 1 } })
  const other = await usher.createUser()
  const read = async (id: string) => { await unwrap(client.get('/api/users/{id}', userOf(id))) }
  for (const id of [other.id, usher.admin.id, usher.admin.id, other.id]) await read(id)
  t.strictSame(statuses().slice(1), [200, 200, 304, 200])
  await client.login(other)
  statuses()
  await read(other.id)
  t.strictSame(statuses(), [200])

  const small = await createClient({ cache: { bytes: 10 } })
  for (const client of [small.client, small.client]) await unwrap(client.get('/api/users/{id}', userOf(other.id)))
  t.strictSame(small.statuses().slice(1), [200, 200])
})

t.test('15.4 PUT and DELETE are repeated after a lost response, and If-Match reports what has happened since', async (t) => {
  const { client, exchanges, statuses } = await createClient()
  const member = await usher.createUser()
  const body = { name: 'Ada', email: member.email }
  proxy.loseResponse(/^PUT /)
  t.equal((await unwrap(client.put('/api/users/{id}', { ...userOf(member.id), body }))).name, 'Ada')
  t.strictSame(statuses().slice(1), [undefined, 200])

  const etag = (await client.get('/api/users/{id}', userOf(member.id))).response.headers.get('ETag')!
  proxy.loseResponse(/^PUT /)
  const { response } = await client.put(
    '/api/users/{id}', { ...userOf(member.id), body: { ...body, name: 'Grace' }, headers: { 'If-Match': etag } }
  )
  t.equal(response.status, 412, 'the first request has changed the user')

  proxy.loseResponse(/^DELETE /)
  t.equal((await client.delete('/api/users/{id}', userOf(member.id))).response.status, 404)
  t.notOk(exchanges.some(({ request }) => request.headers.has('Idempotency-Key')))
})

t.test('15.4 a POST without a key is not repeated', async (t) => {
  const { client, exchanges } = await createClient()
  exchanges.length = 0
  proxy.loseResponse(/^POST /)
  await t.rejects(client.post('/api/auth/password-reset', { body: { email: 'nobody@example.com' } }), TypeError)
  t.equal(exchanges.length, 1)
})

t.test('15.4 temporary rejections are repeated as often as the options allow', async (t) => {
  const responses: Response[] = []
  const keys = new Set<string | null>()
  const respond = (status: number, after?: string) =>
    responses.push(new Response('{"error":"no"}', { status, ...after && { headers: { 'Retry-After': after } } }))
  const client = createUsherClient({
    baseUrl: proxy.url,
    retry: { baseMs: 1, tries: 3, maxMs: 10 },
    fetch: async ({ headers }) => {
      keys.add(headers.get('Idempotency-Key'))
      return responses.shift() ?? new Response('{}', { status: 201, headers: { 'Content-Type': 'application/json' } })
    },
  })
  const create = async () =>
    (await client.post('/api/users', { body: { name: 'Ada', email: `${randomUUID()}@example.com` } })).response.status
  respond(503)
  respond(429, '0')
  t.equal(await create(), 201)
  t.equal(keys.size, 1, 'the same key')
  respond(409)
  t.equal(await create(), 409, 'a conflict is final')
  respond(409, '0')
  t.equal(await create(), 201, 'a request with the same key was in progress')
  respond(429, '3600')
  t.equal(await create(), 429, 'the wait would be too long')
  for (const status of [502, 503, 504]) respond(status)
  t.equal(await create(), 504)
  t.equal(keys.size, 5, 'every call has its own key')
})

t.test('15.4 a call that is aborted is not repeated', async (t) => {
  const { client, exchanges } = await createClient({ retry: { baseMs: 60_000, maxMs: 60_000 } })
  exchanges.length = 0
  const aborter = new AbortController()
  proxy.loseResponse(/^GET /)
  const call = client.get('/api/users', { signal: aborter.signal })
  const rejected = t.rejects(call, { name: 'AbortError' })
  while (exchanges.length === 0 || proxy.lost === 0) await new Promise(setImmediate)
  aborter.abort()
  await rejected
  t.equal(exchanges.length, 1)
})

t.test('15.4 a POST whose response was lost is repeated with the same key, and writes once', async (t) => {
  const { client, statuses } = await createClient()
  const email = `${randomUUID()}@example.com`
  statuses()
  proxy.loseResponse(/^POST \/api\/users/)
  const { data, response } = await client.post('/api/users', { body: { name: 'Once', email } })
  t.strictSame([statuses(), response.headers.get('Idempotency-Replayed')], [[undefined, 201], 'true'])
  t.equal((await unwrap(client.get('/api/users/{id}', userOf(data!.id)))).email, email)

  statuses()
  proxy.loseResponse(/^POST \/api\/posts/)
  const post = await client.post('/api/posts', { body: { title: email, content: '' } })
  t.strictSame([statuses(), post.response.headers.get('Idempotency-Replayed')], [[undefined, 201], 'true'])
  const posts = await unwrap(client.get('/api/posts', { params: { query: { authorId: post.data!.authorId } } }))
  t.equal(posts.filter(({ title }) => title === email).length, 1)

  const form = new FormData()
  form.set('file', new Blob(['Hello']), 'hello.txt')
  form.set('description', 'A greeting')
  statuses()
  proxy.loseResponse(/^POST \/api\/uploads/)
  const upload = await client.fetch('/api/uploads', { method: 'POST', body: form })
  t.strictSame([statuses(), upload.status, upload.headers.get('Idempotency-Replayed')], [[undefined, 200], 200, 'true'])
  const { fileUrl } = await upload.json() as { fileUrl: string }
  t.equal(await (await client.fetch(new URL(fileUrl, proxy.url).pathname)).text(), 'Hello')
})

t.test('15.4 the token is sent to the server of the client only', async (t) => {
  const { client, exchanges } = await createClient()
  exchanges.splice(0)
  for (const path of [
    '@example.com/', '.example.com/', '//example.com/', '/\\example.com/', 'https://example.com/', '/\t/example.com/',
    '/a\n', '',
  ]) {
    await t.rejects(client.fetch(path), TypeError)
  }
  t.strictSame(exchanges, [])
  t.equal((await client.fetch('/api/protected')).status, 200)
})

t.test('15.4 a write whose response was lost is not repeated as another user', async (t) => {
  const [ada, grace] = [await usher.createUser(), await usher.createUser()]
  let isLost = false
  const client = createUsherClient({
    baseUrl: proxy.url,
    retry: { baseMs: 1 },
    async fetch (request) {
      const response = await fetch(request)
      if (!request.url.endsWith('/graphql') || isLost) return response
      isLost = true
      await response.arrayBuffer()
      await client.login(grace)
      throw new TypeError('The response is lost')
    },
  })
  await client.login(ada)
  const title = randomUUID()
  const body = JSON.stringify({ query: `mutation { createPost(input: { title: "${title}", content: "" }) { id } }` })
  await t.rejects(client.fetch('/graphql', { method: 'POST', headers: { 'content-type': 'application/json' }, body }), {
    code: 'USER_CHANGED',
  })
  const posts = await usher.app.usher.posts.list({ limit: 100 })
  t.strictSame(posts.data.filter((post) => post.title === title).map(({ authorId }) => authorId), [ada.id])
  client.close()
})

t.test('15.4 an empty text is a body', async (t) => {
  const { client } = await createClient()
  t.equal((await client.fetch('/api/users', { method: 'POST', body: '' })).status, 415)
})

t.test('15.4 the client works in browsers and on pages that lack randomUUID, getSetCookie and AbortSignal.timeout', async (t) => {
  const lacking: [object, string][] = [
    [crypto, 'randomUUID'], [Headers.prototype, 'getSetCookie'], [AbortSignal, 'timeout'],
    [AbortSignal.prototype, 'throwIfAborted'],
  ]
  for (const [owner, name] of lacking) hide(t, owner, name)
  const { client, exchanges } = await createClient()
  t.strictSame(lacking.filter(([owner, name]) => name in owner), [])
  const keys = []
  for (const email of [`${randomUUID()}@example.com`, `${randomUUID()}@example.com`]) {
    proxy.loseResponse(/^POST .*users/)
    await unwrap(client.post('/api/users', { body: { name: 'Ada', email } }))
    const [lost, repeated] = exchanges.splice(0).slice(-2).map(({ request }) => request.headers.get('Idempotency-Key'))
    t.match(lost, /^[\w.-]{20,255}$/)
    t.equal(repeated, lost)
    keys.push(lost)
  }
  t.not(keys[0], keys[1])
  t.strictSame(await graphql(client, 'mutation { createPost(input: { title: "First", content: "" }) { title } }'), {
    createPost: { title: 'First' },
  })
  t.ok(await client.session.renew(await client.session.token()), 'in Node, the client has kept the cookie')
  const aborter = new AbortController()
  aborter.abort()
  await t.rejects(client.fetch('/api/users', { signal: aborter.signal }))
})

t.test('15.4 outside of browsers, the client keeps the cookie of the session, whatever cookies a proxy adds', async (t) => {
  const { client } = await createClient({
    fetch: async (request) => {
      const response = await fetch(request)
      const cookies = response.headers.getSetCookie()
      const headers = new Headers(response.headers)
      headers.delete('Set-Cookie')
      for (const cookie of ['sticky=a, usher; Expires=Wed, 09 Jun 2027 10:18:14 GMT', ...cookies, 'other=b']) {
        headers.append('Set-Cookie', cookie)
      }
      return new Response(response.status === 204 ? null : response.body, { status: response.status, headers })
    },
  })
  t.ok(await client.session.renew(await client.session.token()))
  await client.logout()
  t.equal(client.session.current.state, 'none')
})

function hide (t: Test, owner: object, name: string): void {
  // The members of `crypto` are those of its prototype.
  const holder = Object.hasOwn(owner, name) ? owner : Object.getPrototypeOf(owner) as object
  const descriptor = Object.getOwnPropertyDescriptor(holder, name)!
  Reflect.deleteProperty(holder, name)
  t.teardown(() => { Object.defineProperty(holder, name, descriptor) })
}

t.test('17.2 a program with an API key needs no session, and a key that is rejected stays rejected', async (t) => {
  const { id, key } = await createKey(usher, usher.admin)
  const exchanges: number[] = []
  const client = createUsherClient({
    baseUrl: proxy.url,
    apiKey: key,
    fetch: async (request) => {
      const response = await fetch(request)
      exchanges.push(response.status)
      return response
    },
  })
  t.equal((await unwrap(client.get('/api/protected'))).user.id, usher.admin.id)
  const { data } = await graphql<{ me: { id: string } }>(client, '{ me { id } }').then((data) => ({ data }))
  t.equal(data.me.id, usher.admin.id)
  await usher.inject('DELETE', `/api/auth/keys/${id}`, { headers: usher.admin.headers })
  t.equal((await client.get('/api/protected')).response.status, 401)
  t.strictSame(exchanges, [200, 200, 401], 'nothing tries to refresh it')
  t.equal(await client.session.renew(), undefined)
  client.close()
})
