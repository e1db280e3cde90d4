import { once } from 'node:events'
import type { Server, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import Fastify from 'fastify'
import httpDefaults from '../../node/http/defaults.ts'
import { serverOptions } from '../../node/http/server.ts'
import { createHeaders } from '../../node/http/security-headers.ts'
import { parseSettings } from '../../node/settings/settings.ts'
import pipelining from '../../plugins/http/raw/pipelining.ts'
import { handleUpgrades } from '../../routes/graphql/live/ws/upgrades.ts'
import { nightly } from '../helpers/nightly.ts'
import { until } from '../helpers/until.ts'
import { listen } from '../helpers/wire.ts'

const UPGRADE = 'connection: upgrade\r\nupgrade: h2c'
const get = (path: string, ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, 'host: x', ...headers].join('\r\n') + '\r\n\r\n'

/** Starts the HTTP server of the node with a route that responds when it is told to. */
async function startServer (t: Test) {
  const setHeaders = createHeaders([])
  const options = serverOptions(parseSettings({ LOG_LEVEL: 'silent' }), setHeaders)
  const app = Fastify({
    pluginTimeout: 0, ...options, http: { ...(options as { http: object }).http, connectionsCheckingInterval: 20 },
  })
  t.teardown(() => app.close())
  await app.register(pipelining)
  await app.register(httpDefaults, { origins: [], setHeaders })
  handleUpgrades(app.server, '/socket', (_, socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'))
  const [arrived, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  app.get('/late', () => {
    // Everything else that the client has sent with the request is parsed by then.
    setImmediate(arrived.resolve)
    return late.promise.then(() => 'late')
  })
  app.get('/now', async () => 'now')
  app.get('/end', async () => 'end')
  app.get('/large', async () => Readable.from(Array.from({ length: 200 }, () => Buffer.alloc(50_000, 'x'))))
  const { port } = await listen(app)
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1')
  t.teardown(() => client.destroy())
  const [connection] = await once(app.server, 'connection')
  return { client, connection: connection as Socket, arrived: arrived.promise, respond: late.resolve }
}

/** Returns the status and body of each response. */
async function readResponses (client: AsyncIterable<string>): Promise<string[]> {
  let text = ''
  for await (const chunk of client) text += chunk
  return text.split(/(?=HTTP\/1\.1 )/)
    .map((response) => `${response.slice(9, 12)} ${response.split('\r\n\r\n')[1]!.slice(0, 40)}`)
}

const CONNECT = 'CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n'
const WEBSOCKET = get('/socket', 'connection: upgrade', 'upgrade: websocket')
const LAST_UPGRADE = get('/end', 'connection: close, upgrade', 'upgrade: h2c')
const cases: [name: string, bytes: string, responses: string[]][] = [
  ['an upgrade that is ignored', get('/now', UPGRADE) + get('/end', 'connection: close'), ['200 now', '200 end']],
  [
    'several upgrades that are ignored', get('/now', UPGRADE).repeat(5) + LAST_UPGRADE,
    [...Array(5).fill('200 now'), '200 end'],
  ],
  ['a WebSocket', WEBSOCKET, ['101 ']],
  ['CONNECT', CONNECT, ['405 {"error":"CONNECT is not allowed here","']],
  ['a malformed request', 'NONSENSE\r\n\r\n', ['400 {"errors":["request is not valid HTTP"]}']],
]
for (const [name, bytes, responses] of cases) {
  t.test(`1.4 ${name} behind a request without a response yet gets its response after that one`, async (t) => {
    const { client, arrived, respond } = await startServer(t)
    client.write(get('/late') + get('/late') + bytes)
    await arrived
    respond()
    t.same(await readResponses(client), ['200 late', '200 late', ...responses])
  })
}

t.test('1.4 the malformed rest of a body whose request has a response gets no other one', async (t) => {
  for (const [path, rest] of [['/now', 'ZZZ\r\n'], ['/large', 'ZZZ\r\n'], ['/large', '']] as const) {
    const { client } = await startServer(t)
    client.write(get(path, 'transfer-encoding: chunked') + '5\r\nhello\r\n')
    const [first] = await once(client, 'data')
    if (rest) client.write(rest)
    else client.end()
    let text: string = first
    // A response that cannot be completed is cut off.
    for await (const chunk of client.on('error', () => {})) text += chunk
    t.same(text.match(/HTTP\/1\.1 .../g), ['HTTP/1.1 200'], path)
  }
})

t.test('1.13 a node with a response to send survives an ignored upgrade and the request after it', async (t) => {
  const { client, arrived, respond } = await startServer(t)
  client.write(get('/late') + get('/now', UPGRADE))
  await arrived
  respond()
  await once(client, 'data')
  client.write(get('/end', 'connection: close'))
  t.match((await readResponses(client)).at(-1), '200 end')
})

t.test('1.4 a client that does not read its response is disconnected, even if it has asked for an upgrade', async (t) => {
  const { client, connection, arrived } = await startServer(t)
  client.write(get('/large') + get('/late') + get('/now', UPGRADE))
  await arrived
  connection.setTimeout(200)
  await once(connection, 'close')
  t.pass()
})

t.test('1.4 a large response is sent completely, although an upgrade waits for it', async (t) => {
  const { client, arrived, respond } = await startServer(t)
  client.write(get('/large') + get('/late') + LAST_UPGRADE)
  await arrived
  respond()
  let bytes = 0
  for await (const chunk of client) bytes += chunk.length
  t.ok(bytes > 10_000_000)
})

t.test('1.4 a malformed request is answered once, although Node also reports its timeout while an earlier response is late', async (t) => {
  const { client, connection, arrived, respond } = await startServer(t)
  client.write(get('/late') + 'GET /now HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n')
  await arrived
  const { server, _httpMessage: response } = connection as unknown as { server: Server, _httpMessage: ServerResponse }
  const before = response.listenerCount('close')
  Object.assign(server, { headersTimeout: 50, requestTimeout: 50 })
  const [{ code }] = await once(server, 'clientError')
  t.equal(code, 'ERR_HTTP_REQUEST_TIMEOUT')
  t.equal(response.listenerCount('close'), before)
  respond()
  t.same(await readResponses(client), ['200 late', '400 {"errors":["request is not valid HTTP"]}'])
})

nightly('1.13 a client that sends many requests while the first one waits is not read, and gets all responses later', async (t) => {
  const { client, connection, arrived, respond } = await startServer(t)
  const { server } = connection as unknown as { server: Server }
  let requests = 0
  server.prependListener('request', () => { requests++ })
  const sent = 30_000
  client.write(get('/late') + get('/now').repeat(sent) + get('/end', 'connection: close'))
  await arrived
  await until('the connection is not read', () => connection.isPaused())
  t.ok(requests < sent / 3, `${requests} requests`)
  respond()
  const responses = await readResponses(client)
  t.equal(responses.filter((response) => response === '200 now').length, sent)
  t.equal(responses.at(-1), '200 end')
})

t.test('1.13 a client that disconnects while an upgrade waits for a response has no effect', async (t) => {
  for (const bytes of [get('/now', UPGRADE), WEBSOCKET, CONNECT, 'NONSENSE\r\n\r\n']) {
    const { client, connection, arrived, respond } = await startServer(t)
    client.write(get('/late') + bytes)
    await arrived
    const closed = new Promise((resolve) => connection.once('close', resolve))
    client.resetAndDestroy()
    respond()
    await closed
    t.pass(bytes)
  }
})
