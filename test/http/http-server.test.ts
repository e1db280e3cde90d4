import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import helmet from '@fastify/helmet'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import httpDefaults from '../../node/http/defaults.ts'
import { serverOptions, trustProxy } from '../../node/http/server.ts'
import { createHeaders } from '../../node/http/security-headers.ts'
import emptyBody from '../../plugins/http/raw/empty-body.ts'
import { clientAddressOf } from '../../plugins/http/client-info.ts'
import { handleUpgrades } from '../../routes/graphql/live/ws/upgrades.ts'
import { parseSettings } from '../../node/settings/settings.ts'
import { listen, sendRaw } from '../helpers/wire.ts'

/** Starts the HTTP server of the node with one route. */
async function startServer (t: Test) {
  const setHeaders = createHeaders([])
  const app = Fastify(serverOptions(parseSettings({ LOG_LEVEL: 'silent' }), setHeaders))
  t.teardown(() => app.close())
  await app.register(emptyBody)
  await app.register(httpDefaults, { origins: [], setHeaders })
  app.get('/here', async ({ host, url, query }) => ({ host, url, query }))
  return { app, ...await listen(app) }
}

const NOT_FOUND = { error: 'Not found', code: 'NOT_FOUND' }
const NOT_ALLOWED = { error: 'CONNECT is not allowed here', code: 'METHOD_NOT_ALLOWED' }
const NO_HTTP = { errors: ['request is not valid HTTP'] }

t.test('1.4 responses to unusual and malformed HTTP requests have the shapes of the contract', async (t) => {
  const { port } = await startServer(t)
  const close = 'connection: close\r\n\r\n'
  const cases: [request: string, status: number, body: object][] = [
    [`GET /here HTTP/1.1\r\nhost: a\r\nHost: b\r\n${close}`, 400, { errors: ['host header must not be repeated'] }],
    [`GET /here HTTP/1.1\r\nhost: a\r\nhost: a\r\n${close}`, 400, { errors: ['host header must not be repeated'] }],
    [`GET /here HTTP/1.0\r\nhost: a\r\nhost: b\r\n${close}`, 400, { errors: ['host header must not be repeated'] }],
    [`GET /here?a=1 HTTP/1.1\r\nhost: a\r\n${close}`, 200, { host: 'a', url: '/here?a=1', query: { a: '1' } }],
    [`GET http://b:80/here?a=1 HTTP/1.1\r\nhost: a\r\n${close}`, 200, {
      host: 'b:80', url: '/here?a=1', query: { a: '1' },
    }],
    [`GET HTTPS://b/none HTTP/1.1\r\nhost: a\r\n${close}`, 404, NOT_FOUND],
    [`GET http://b HTTP/1.1\r\nhost: a\r\n${close}`, 404, NOT_FOUND],
    [`GET http://b?a=1 HTTP/1.1\r\nhost: a\r\n${close}`, 404, NOT_FOUND],
    [`GET ftp://b/here HTTP/1.1\r\nhost: a\r\n${close}`, 404, NOT_FOUND],
    [`OPTIONS * HTTP/1.1\r\nhost: a\r\n${close}`, 404, NOT_FOUND],
    [`GET * HTTP/1.1\r\nhost: a\r\n${close}`, 404, NOT_FOUND],
    ['CONNECT b:443 HTTP/1.1\r\nhost: b\r\n\r\n', 405, NOT_ALLOWED],
    ['CONNECT b:443 HTTP/1.1\r\n\r\n\u0016\u0003\u0001', 405, NOT_ALLOWED],
    ['CONNECT /here HTTP/1.1\r\nhost: b\r\n\r\n', 405, NOT_ALLOWED],
    ['CONNECT http://b/ HTTP/1.1\r\nhost: b\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n', 405, NOT_ALLOWED],
    ['CONNECT  HTTP/1.1\r\nhost: b\r\n\r\n', 405, NOT_ALLOWED],
    ['CONNECT b:443\r\nhost: b\r\n\r\n', 405, NOT_ALLOWED],
    ['CONNECT b:443 HTTP/9.9\r\nhost: b\r\n\r\n', 400, NO_HTTP],
  ]
  for (const [request, status, body] of cases) {
    const [head = '', text = ''] = (await sendRaw(port, request)).split('\r\n\r\n')
    t.same([Number(head.split(' ')[1]), text && JSON.parse(text)], [status, body], request)
    t.match(head, /^connection: close$/im, request)
    if (status === 405) t.match(head, /^Allow: /m)
  }
})

t.test('1.4 a request without a body that no route matches has a response, also if it has a content type', async (t) => {
  const { port } = await startServer(t)
  const statuses = { 'application/json': 400, 'multipart/form-data; boundary=x': 404, 'text/plain': 404 }
  for (const [type, status] of Object.entries(statuses)) {
    const client = connect(port, '127.0.0.1').setEncoding('latin1')
    client.write(`POST /none HTTP/1.1\r\nhost: a\r\ncontent-type: ${type}\r\nconnection: close\r\n\r\n`)
    const [response] = await once(client, 'data')
    client.destroy()
    t.match(response, new RegExp(`^HTTP/1\\.1 ${status} `), type)
  }
})

t.test('1.4 a client that disconnects during a CONNECT request has no effect on others', async (t) => {
  const { app, port, url } = await startServer(t)
  for (let round = 0; round < 20; round++) {
    const socket = connect(port, '127.0.0.1')
    const taken = once(app.server, 'connect') as Promise<[unknown, Socket]>
    socket.write('CONNECT b:443 HTTP/1.1\r\nhost: b\r\n\r\n', () => socket.resetAndDestroy())
    const [, accepted] = await taken
    if (!accepted.destroyed) await new Promise((resolve) => accepted.once('close', resolve))
  }
  t.equal((await fetch(`${url}/here`)).status, 200)
})

t.test('1.13 repeated upgrade requests on one connection leave no listeners behind', async (t) => {
  const { app, port } = await startServer(t)
  handleUpgrades(app.server, '/graphql', () => {})
  app.server.on('connection', (socket) => { socket.on('close', () => {}) })
  const accepted = once(app.server, 'connection') as Promise<[Socket]>
  const client = connect(port, '127.0.0.1')
  t.teardown(() => client.destroy())
  const [socket] = await accepted
  const count = () => socket.eventNames().reduce((total, event) => total + socket.listenerCount(event), 0)
  const counts: number[] = []
  for (let round = 0; round < 20; round++) {
    client.write(`GET /here?${round} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n`)
    t.match(String(await once(client, 'data')), `/here?${round}`)
    counts.push(count())
  }
  t.same(new Set(counts).size, 1, counts.join())
})

t.test('1.6 the security headers are those of @fastify/helmet', async (t) => {
  for (const origins of [[], ['*']]) {
    const [ours, theirs] = [
      Fastify({ pluginTimeout: 0, trustProxy: true }), Fastify({ pluginTimeout: 0, trustProxy: true }),
    ]
    await ours.register(httpDefaults, { origins, setHeaders: createHeaders(origins) })
    await theirs.register(helmet, {
      contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
      crossOriginResourcePolicy: { policy: origins.length > 0 ? 'cross-origin' : 'same-origin' },
      strictTransportSecurity: { maxAge: 31_536_000 },
      xFrameOptions: { action: 'deny' },
      // These concern pages or old browsers.
      crossOriginOpenerPolicy: false,
      originAgentCluster: false,
      xDnsPrefetchControl: false,
      xDownloadOptions: false,
      xPermittedCrossDomainPolicies: false,
      xXssProtection: false,
    })
    for (const app of [ours, theirs]) app.get('/', async () => 'here')
    const request = { url: '/', headers: { 'x-forwarded-proto': 'https' } }
    const [{ headers }, { headers: expected }] = [await ours.inject(request), await theirs.inject(request)]
    t.equal(expected['strict-transport-security'], 'max-age=31536000; includeSubDomains')
    t.match(headers, { ...expected, date: String })
  }
})

t.test('8 TRUST_PROXY: proxies are recognised with a port, in brackets and as mapped addresses, and others are not trusted', async (t) => {
  const app = Fastify({
    pluginTimeout: 0,
    trustProxy: trustProxy(['loopback', '10.0.0.0/8', '2001:db8::/32', '::ffff:192.0.2.0/120', '198.51.100.7']),
  })
  app.get('/', async (request) => ({ address: clientAddressOf(request) }))
  const of = async (forwarded: string, remoteAddress = '127.0.0.1') =>
    (await app.inject({ url: '/', remoteAddress, headers: { 'x-forwarded-for': forwarded } })).json().address
  const client = '203.0.113.9'
  for (const proxy of [
    '10.1.2.3', '10.1.2.3:80', '[2001:db8::5]:443', '2001:DB8::5', '::ffff:10.1.2.3', '192.0.2.200', '198.51.100.7:9',
    '::1',
  ]) {
    t.equal(await of(`_x, ${client}:4711, ${proxy}`), client, proxy)
  }
  for (const other of ['11.1.2.3', '[2001:db9::5]:443', '192.0.3.1', '198.51.100.8']) {
    t.not(await of(`${client}, ${other}`), client, other)
  }
  t.equal(await of(`${client}, _hidden`), 'unknown', 'whoever that is')
  t.equal(await of(client, '198.51.100.9'), '198.51.100.9')
  t.same([trustProxy([]), trustProxy(['false']), trustProxy(['true', '10.0.0.0/8'])], [false, false, true])
})

t.test('8 CORS_ORIGIN compares origins as browsers do (RFC 6454), also those of apps and extensions', async (t) => {
  const origins = [
    'HTTPS://App.Example.com:443', 'http://localhost:80', 'https://bücher.example', 'https://[::1]:8443',
    'capacitor://localhost', 'tauri://localhost', 'chrome-extension://abcdefghijklmnop',
  ]
  t.same(parseSettings({ CORS_ORIGIN: origins.join(', ') }).CORS_ORIGIN, origins)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(httpDefaults, { origins, setHeaders: createHeaders(origins) })
  app.get('/here', async () => 'here')
  const allowed = async (origin: string) =>
    (await app.inject({ url: '/here', headers: { origin } })).headers['access-control-allow-origin']
  const same = [
    'https://app.example.com', 'https://app.example.com:443', 'http://localhost', 'https://xn--bcher-kva.example',
    'https://[::1]:8443', 'capacitor://localhost', 'tauri://localhost', 'chrome-extension://abcdefghijklmnop',
  ]
  for (const origin of same) t.equal(await allowed(origin), origin, origin)
  const others = [
    'http://app.example.com', 'https://app.example.com:8443', 'https://localhost', 'capacitor://evil',
    'tauri://localhost.evil', 'chrome-extension://other', 'null', 'https://*', '',
  ]
  for (const origin of others) t.equal(await allowed(origin), undefined, origin)
})

t.test('8 of several entries in X-Forwarded-Proto, that of the first trusted proxy counts', async (t) => {
  const cases: [trusted: string, addresses: string | undefined, protocols: string, expected: string][] = [
    ['loopback', '192.0.2.7', 'https', 'https'],
    ['loopback', '192.0.2.7', 'HTTPS', 'https'],
    ['loopback, 10.0.0.0/8', '192.0.2.7, 10.0.0.1', 'https,http', 'https'],
    ['loopback, 10.0.0.0/8', '192.0.2.7, 10.0.0.1', 'http, https', 'http'],
    ['true', '192.0.2.7, 10.0.0.1', 'https , http', 'https'],
    // What the client itself has sent does not count.
    ['loopback', '10.9.9.9, 192.0.2.7', 'https, http', 'http'],
    ['loopback, 10.0.0.0/8', '10.9.9.9, 192.0.2.7, 10.0.0.1', 'http, https, http', 'https'],
    ['loopback', undefined, 'https, http', 'http'],
    ['false', '192.0.2.7, 10.0.0.1', 'https,http', 'http'],
  ]
  for (const [trusted, addresses, protocols, expected] of cases) {
    const setHeaders = createHeaders([])
    const app = Fastify(serverOptions(parseSettings({ LOG_LEVEL: 'silent', TRUST_PROXY: trusted }), setHeaders))
    t.teardown(() => app.close())
    await app.register(httpDefaults, { origins: [], setHeaders })
    app.get('/here', async ({ protocol }) => protocol)
    const headers = { 'x-forwarded-proto': protocols, ...addresses !== undefined && { 'x-forwarded-for': addresses } }
    const { body, headers: sent } = await app.inject({ url: '/here', headers })
    const what = `TRUST_PROXY=${trusted}: ${addresses}, ${protocols}`
    t.equal(body, expected, what)
    t.equal(sent['strict-transport-security'] !== undefined, expected === 'https', what)
  }
})
