import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance, FastifyReply, FastifyRequest, InjectOptions } from 'fastify'
import t, { type Test } from 'tap'
import usher from '../../app.ts'
import { withUsers } from '../helpers/app.ts'
import { addHooks, addPlugins, addRoutes, addSettings, mountOptions, openHost } from '../helpers/host.ts'
import { nightly } from '../helpers/nightly.ts'
import { surface } from '../helpers/surface.ts'
import { listen, openSocket, sendRaw, withoutDate } from '../helpers/wire.ts'

const PREFIX = '/accounts'
const form = [
  '--x', 'content-disposition: form-data; name="file"; filename="a.txt"', '', 'bytes', '--x',
  'content-disposition: form-data; name="text"', '', 'words', '--x--', '',
].join('\r\n')

type Mount = (app: FastifyInstance) => Promise<void>

// Requests to routes of the host. Each must get the same response with and without Usher.
const requests: InjectOptions[] = [
  { url: '/mine' },
  { url: '/mine/' },
  { url: '/mine?a=1&a=2' },
  { url: '/mine', headers: { cookie: 'a=b; usher_session=x', 'x-host-id': 'given' } },
  { url: '/mine', headers: { authorization: 'Bearer nonsense', accept: 'application/vnd.api.v9+json' } },
  { method: 'POST', url: '/mine', payload: { a: 1, extra: 2 } },
  { method: 'POST', url: '/mine', payload: { bad: true } },
  { method: 'POST', url: '/mine', payload: '{"a":', headers: { 'content-type': 'application/json' } },
  { method: 'POST', url: '/mine', payload: '', headers: { 'content-type': 'application/json' } },
  { method: 'POST', url: '/mine', payload: `"${'x'.repeat(300)}"`, headers: { 'content-type': 'application/json' } },
  { method: 'POST', url: '/mine', payload: 'x'.repeat(5000), headers: { 'content-type': 'text/x' } },
  { method: 'POST', url: '/mine', payload: 'text', headers: { 'content-type': 'text/plain' } },
  { method: 'POST', url: '/mine', payload: '<a/>', headers: { 'content-type': 'application/xml' } },
  { method: 'POST', url: '/mine', payload: 'a', headers: { 'content-type': 'not a type' } },
  { method: 'DELETE', url: '/mine' },
  { method: 'HEAD', url: '/mine' },
  {
    method: 'OPTIONS',
    url: '/mine',
    headers: { origin: 'https://host.example', 'access-control-request-method': 'GET' },
  },
  { method: 'POST', url: '/upload', payload: form, headers: { 'content-type': 'multipart/form-data; boundary=x' } },
  {
    method: 'POST',
    url: '/upload',
    payload: form.replace('bytes', 'b'.repeat(200)),
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
  },
  { method: 'POST', url: '/upload', payload: form, headers: { 'content-type': 'multipart/form-data' } },
  { url: '/fails' },
  { url: '/unknown' },
  { url: '/accountsx/api/users' },
  { url: '/api/users' },
  { url: '/parts/%E0%A4%A' },
  { url: `/parts/${'x'.repeat(65)}` },
  { url: '/token' },
  { url: '/locked' },
  { url: '/locked', headers: { authorization: 'Bearer a.b.c' } },
  { url: '/cookie' },
  { url: '/files/host.ts' },
  { url: '/files/none' },
  { url: '/reference/' },
  { url: '/graphql?query={hosts{name,guests}}' },
  { method: 'POST', url: '/graphql', payload: { query: '{ hosts { name guests } }' } },
  { method: 'POST', url: '/graphql', payload: { query: '{ users { nodes { id } } }' } },
  { method: 'POST', url: '/graphql', payload: '{', headers: { 'content-type': 'application/json' } },
  {
    method: 'POST', url: '/graphql', payload: '{ hosts { name } }', headers: { 'content-type': 'application/graphql' },
  },
]

async function answers (app: FastifyInstance): Promise<object[]> {
  const all: object[] = []
  for (const request of requests) {
    const { statusCode, headers: { date, ...headers }, body } = await app.inject(request)
    all.push({ request, statusCode, headers, body })
  }
  return all
}

// Exchanges messages over sockets and sends raw bytes, and returns everything that was received.
async function conversations (t: Test, app: FastifyInstance): Promise<object> {
  const { port, ws, url } = await listen(app)
  const own = await openSocket(t, `${ws}/ws`, ['any'])
  own.say('hello')
  const graphql = await openSocket(t, `${ws}/graphql`, ['graphql-transport-ws'])
  graphql.say({ type: 'connection_init' })
  const acknowledged = await graphql.hear()
  graphql.say({ type: 'subscribe', id: '1', payload: { query: 'subscription { rang }' } })
  graphql.say({ type: 'subscribe', id: '2', payload: { query: '{ hosts { name guests } }' } })
  const queried = [await graphql.hear(), await graphql.hear()]
  await fetch(`${url}/graphql`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"query":"mutation { ring }"}',
  })
  return {
    own: [own.socket.protocol, await own.hear()],
    graphql: [graphql.socket.protocol, acknowledged, ...queried, await graphql.hear()],
    h2c: withoutDate(await sendRaw(
      port,
      'GET /mine HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n'
    )),
    upgradeOfNone: withoutDate(await sendRaw(
      port,
      `GET /mine HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${btoa('0123456789012345')}\r\n\r\n`
    )),
    noHttp: await sendRaw(port, 'NONSENSE\r\n\r\n'),
  }
}

const hosts: Record<string, (mount: Mount, seen: string[]) => Mount> = {
  'plugins, settings and hooks before Usher': (mount, seen) => async (app) => {
    await addPlugins(app)
    addSettings(app)
    addHooks(app, seen)
    addRoutes(app)
    await mount(app)
  },
  'plugins, settings and hooks after Usher': (mount, seen) => async (app) => {
    await mount(app)
    await addPlugins(app)
    addSettings(app)
    addHooks(app, seen)
    addRoutes(app)
  },
}

for (const [name, build] of Object.entries(hosts)) {
  t.test(`9 Usher works in a host with ${name}`, async (t) => {
    const without = openHost(t)
    without.decorateRequest('actor', null)
    await build(async () => {}, [])(without)

    const app = openHost(t)
    const options = await mountOptions(t)
    await build(async (app) => { await app.register(usher, options) }, [])(app)
    await app.ready()

    await t.test('9 the responses of the host are the same as without Usher', async (t) => {
      const [before, after] = [await answers(without), await answers(app)]
      for (const [index, request] of requests.entries()) {
        t.strictSame(after[index], before[index], `${request.method ?? 'GET'} ${request.url}`)
      }
      t.strictSame(await conversations(t, app), await conversations(t, without))
    })

    await t.test('9 the responses of Usher are the same as without other plugins', async (t) =>
      surface(t, await withUsers(app, options)))
  })
}

nightly('9 a preSerialization hook and a serializer of the host do not change the responses of Usher', async (t) => {
  const app = openHost(t)
  app.addHook('preSerialization', async (_, __, payload) => ({ envelope: payload }))
  app.setReplySerializer((payload) => `${JSON.stringify(payload)} of the host`)
  app.addHook('onRequest', async ({ headers }) => {
    if (headers['x-limit']) throw Object.assign(new Error('slow down'), { statusCode: 429, code: 'LIMIT' })
  })
  const options = await mountOptions(t)
  await app.register(usher, options)
  app.get('/mine', async () => ({ a: 1 }))
  t.equal((await app.inject('/mine')).body, '{"envelope":{"a":1}} of the host')
  await listen(app)
  const limited = await app.inject({ url: `${PREFIX}/api/users`, headers: { 'x-limit': '1' } })
  t.strictSame([limited.statusCode, limited.json()], [429, { error: 'slow down', code: 'LIMIT' }])
  await surface(t, await withUsers(app, options))
})

nightly('9 what a hook of the host responds itself reaches the client as the host sends it, whatever the status', async (t) => {
  const app = openHost(t)
  const answer = async ({ headers }: FastifyRequest, reply: FastifyReply, phase: string) => {
    if (headers['x-phase'] !== phase) return
    const status = Number(headers['x-status'])
    return reply.code(status).header('retry-after', '77').header('connection', 'close')
      .send({ message: 'of the host', at: 1, errors: { a: 1 }, data: 'x' })
  }
  app.addHook('onRequest', (request, reply) => answer(request, reply, 'onRequest'))
  app.addHook('preParsing', async (request, reply) => { await answer(request, reply, 'preParsing') })
  app.addHook('preValidation', (request, reply) => answer(request, reply, 'preValidation'))
  app.addHook('preHandler', (request, reply) => answer(request, reply, 'preHandler'))
  app.addHook('preSerialization', async (_, __, payload) => ({ envelope: payload }))
  const options = await mountOptions(t)
  await app.register(usher, options)
  const { admin } = await withUsers(app, options)
  const body = { envelope: { message: 'of the host', at: 1, errors: { a: 1 }, data: 'x' } }
  const targets: [method: 'GET' | 'POST' | 'DELETE', path: string, payload?: object | string, headers?: object][] = [
    ['GET', '/api/users'],
    ['GET', `/api/users/${admin.id}`],
    ['POST', '/api/auth/login', { email: admin.email, password: admin.password }],
    ['DELETE', `/api/users/${admin.id}`],
    ['GET', '/health/ready'],
    ['POST', '/graphql', { query: '{ me { id } }' }],
    [
      'POST', '/login', `email=${admin.email}&password=x`,
      { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
    ],
  ]
  const wrong: object[] = []
  for (const [method, path, payload, headers] of targets) {
    for (const phase of ['onRequest', 'preParsing', 'preValidation', 'preHandler']) {
      for (const status of [200, 201, 400, 403, 429, 500, 503]) {
        const response = await app.inject({
          method,
          url: `${PREFIX}${path}`,
          headers: { ...admin.headers, ...headers, 'x-phase': phase, 'x-status': `${status}` },
          ...payload && { payload },
        })
        const { 'retry-after': retryAfter, connection, location } = response.headers
        const found = [response.statusCode, response.json(), retryAfter, connection, location]
        if (!isDeepStrictEqual(found, [status, body, '77', 'close', undefined])) wrong.push({ phase, method, path, found })
      }
    }
  }
  t.same(wrong, [])
})

t.test('9 Retry-After of a hook of the host that rejects a request is kept', async (t) => {
  const app = openHost(t)
  app.addHook('onRequest', async ({ headers }, reply) => {
    if (!headers['x-status']) return
    reply.header('retry-after', '77')
    throw Object.assign(new Error('shed'), { statusCode: Number(headers['x-status']), code: 'SHED' })
  })
  await app.register(usher, await mountOptions(t))
  for (const status of ['429', '503']) {
    for (const accept of ['application/json', 'application/graphql-response+json']) {
      for (const url of [`${PREFIX}/api/users`, `${PREFIX}/graphql?query={me{id}}`]) {
        const { headers, body } = await app.inject({ url, headers: { accept, 'x-status': status } })
        t.equal(headers['retry-after'], '77', `${url} ${status}`)
        t.match(body, /SHED/)
      }
    }
  }
})
