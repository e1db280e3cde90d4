import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { connect as connectTls } from 'node:tls'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { buildSchema } from 'graphql'
import { useServer } from 'graphql-ws/use/ws'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import usherPlugin from '../../app.ts'
import { createUsher, sharedUsher, type TestUsher } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { hostOf, openSocket, protocols } from '../helpers/graphql.ts'
import { nightly, sample } from '../helpers/nightly.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

t.test('7.7 upgrades', async (t) => {
  const usher = await sharedUsher()
  const host = await hostOf(usher)
  const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
  const upgrade = (start: string, rest: string = key) =>
    `${start} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${rest}\r\n\r\n`

  t.test('7.7 the path may have a query string, and header values are not case-sensitive', async (t) => {
    const socket = await (await openSocket(t, usher, { path: '/graphql?a=/b?c' })).init()
    t.same(await socket.run('{ me { id } }'), { data: { me: null } })
    const raw = await talk(t, usher)
    raw.write(`GET /graphql HTTP/1.1\r\nhost: ${host}\r\nCONNECTION: keep-alive, upgrade\r\nUPGRADE: WebSocket\r\nSec-WebSocket-Protocol: graphql-ws\r\n${key}\r\n\r\n`)
    t.match(await raw.read(/\r\n\r\n/), /^HTTP\/1\.1 101 [^]*Sec-WebSocket-Protocol: graphql-ws/)
  })

  t.test('7.7 a handshake behind a request without a response yet is answered after it', async (t) => {
    const raw = await talk(t, usher)
    raw.write(`GET /api/users/${usher.admin.id} HTTP/1.1\r\nHost: ${host}\r\n\r\n${upgrade('GET /graphql', `${key}\r\nSec-WebSocket-Protocol: graphql-ws`)}`)
    t.match(
      await raw.read(/ 101 [^]*\r\n\r\n$/), /^HTTP\/1\.1 200 [^]*"email":"admin@example.com"[^]*\}HTTP\/1\.1 101 /
    )
  })

  t.test('7.7 an invalid handshake gets 400', async (t) => {
    for (const rest of [
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 7\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      `${key}\r\nSec-WebSocket-Protocol: ,,`,
    ]) {
      const raw = await talk(t, usher)
      raw.write(upgrade('GET /graphql', rest))
      t.match(await raw.end(), /^HTTP\/1\.1 4(00|26) /, rest)
    }
  })

  t.test('7.4 a handshake with an invalid token gets the errors and no socket', async (t) => {
    const raw = await talk(t, usher)
    raw.write(upgrade('GET /graphql', `${key}\r\nAuthorization: Bearer x`))
    t.match(await raw.end(), /^HTTP\/1\.1 200 [^]*INVALID_TOKEN/)
  })

  t.test('1.13 a client that leaves its connection open after a failed handshake is disconnected', async (t) => {
    const accepted = once(usher.app.server, 'connection')
    const [hostname, port] = host.split(':')
    const client = connect({ host: hostname!, port: Number(port), allowHalfOpen: true }).resume()
    t.teardown(() => client.destroy())
    client.write(upgrade('GET /graphql', `${key}\r\nAuthorization: Bearer x`))
    const [connection] = await accepted
    await once(connection, 'close')
    t.notOk(client.writableEnded)
  })

  t.test('7.1 a POST with an Upgrade header is handled as a POST', async (t) => {
    const raw = await talk(t, usher)
    for (let round = 0; round < 3; round++) {
      const body = '{"query":"{ __typename }"}'
      raw.write(`${upgrade('POST /graphql', `${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`)}${body}`)
      t.match(await raw.read(/__typename.*$/), /^HTTP\/1\.1 200 [^]*\{"data":\{"__typename":"Query"\}\}$/)
    }
  })

  t.test('7.7 an Upgrade header elsewhere is ignored: the request gets its response and the connection stays open', async (t) => {
    const raw = await talk(t, usher)
    const h2c = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__'
    for (let round = 0; round < 2; round++) {
      raw.write(`GET /api/users/${usher.admin.id} HTTP/1.1\r\nHost: ${host}\r\n${h2c}\r\n\r\n`)
      t.match(await raw.read(/\}$/), /^HTTP\/1\.1 200 [^]*"email":"admin@example.com"/)
      raw.write(`GET /graphql HTTP/1.1\r\nHost: ${host}\r\n${h2c}\r\n\r\n`)
      t.match(await raw.read(/\}$/), /^HTTP\/1\.1 400 /)
      raw.write(upgrade('GET /api/nothing'))
      t.match(await raw.read(/\}$/), /^HTTP\/1\.1 404 /)
      raw.write(upgrade('GET /elsewhere'))
      t.match(await raw.read(/\}$/), /^HTTP\/1\.1 404 /)
      const body = JSON.stringify({ email: 'nobody@example.com', password: 'x'.repeat(100_000) })
      raw.write(`POST /api/auth/login HTTP/1.1\r\nHost: ${host}\r\n${h2c}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`)
      for (let at = 0; at < body.length; at += 30_000) raw.write(body.slice(at, at + 30_000))
      t.match(await raw.read(/\}$/), /^HTTP\/1\.1 400 [^]*password must be at most/)
      raw.write(`POST /api/auth/login HTTP/1.1\r\nHost: ${host}\r\n${h2c}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`)
      t.match(await raw.read(/\}$/), /^HTTP\/1\.1 400 [^]*email is required/)
    }
    raw.write(`GET /api/users/${usher.admin.id} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n`)
    t.match(await raw.end(), /^HTTP\/1\.1 200 /)
  })

  t.test('7.7 a client that disconnects during the handshake affects no other', async (t) => {
    for (let round = 0; round < 20; round++) {
      const raw = await talk(t, usher)
      raw.write(upgrade('GET /graphql', `${key}\r\nSec-WebSocket-Protocol: graphql-ws`))
      raw.reset()
    }
    t.same(await (await (await openSocket(t, usher)).init()).run('{ me { id } }'), { data: { me: null } })
  })
})

t.test('7.7 over TLS, sockets work and other upgrades are ignored', async (t) => {
  const psk = Buffer.from('a key that both know, so that no certificate is needed')
  const shared = { ciphers: 'PSK', maxVersion: 'TLSv1.2' as const }
  const app = Fastify({ pluginTimeout: 0, forceCloseConnections: true, https: { ...shared, pskCallback: () => psk } })
  t.teardown(() => app.close())
  await app.register(usherPlugin, {
    databaseUrl: await testDatabaseUrl(), schema: uniqueSchema('tls'), uploadsDir: temporaryFolder(), poolSize: 2,
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const options = { ...shared, pskCallback: () => ({ psk, identity: 'test' }), checkServerIdentity: () => undefined }

  const socket = new WebSocket(`wss://127.0.0.1:${port}/graphql`, 'graphql-transport-ws', options as object)
  await once(socket, 'open')
  socket.terminate()

  const raw = connectTls({ ...options, port, host: '127.0.0.1' }).setEncoding('latin1')
  for (const method of ['GET', 'POST']) {
    raw.write(
      `${method} /api/nothing HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n`
    )
    t.match((await once(raw, 'data'))[0], /^HTTP\/1\.1 404 /)
  }
  raw.destroy()
})

type Register = (app: FastifyInstance) => unknown
/** Mounts Usher in a host that adds something before and after. The host's own listeners of upgrades use `/host`. */
async function mountIn (t: Test, { before = () => {}, after = () => {}, options = {} }: {
  before?: Register, after?: Register, options?: FastifyServerOptions
}) {
  const app = Fastify({ pluginTimeout: 0, forceCloseConnections: true, ...options })
  t.teardown(() => app.close())
  await before(app)
  await app.register(usherPlugin, {
    databaseUrl: await testDatabaseUrl(),
    schema: uniqueSchema(t.name),
    uploadsDir: temporaryFolder(),
    poolSize: 2,
    deadlines: slow,
  })
  await after(app)
  return { app, prefix: '' }
}

async function isRejected (mounted: Pick<TestUsher, 'app'>, path: string): Promise<boolean> {
  const socket = new WebSocket(`ws://${await hostOf(mounted)}${path}`, 'graphql-transport-ws')
  return once(socket, 'open').then(() => false, () => true)
}

const listeners: Record<string, Register> = {
  'ws with a path' ({ server }) {
    new WebSocketServer({ server, path: '/host' }).on('connection', (socket) => socket.send('of the host'))
  },
  'graphql-ws' ({ server }) {
    const schema = buildSchema('type Query { hello: String }')
    useServer(
      { schema, roots: { query: { hello: () => 'of the host' } } }, new WebSocketServer({ server, path: '/host' })
    )
  },
  // As the WsAdapter of NestJS does it.
  'a listener that destroys what it does not know' ({ server }) {
    const sockets = new WebSocketServer({ noServer: true }).on('connection', (socket) => socket.send('of the host'))
    server.on('upgrade', (request, socket, head) => {
      if (request.url !== '/host') return socket.destroy()
      sockets.handleUpgrade(request, socket, head, (accepted) => sockets.emit('connection', accepted, request))
    })
  },
}

for (const [name, listener] of sample(Object.entries(listeners), 1)) {
  for (const position of ['before', 'after'] as const) {
    t.test(`9 sockets work beside ${name}, added ${position} Usher`, async (t) => {
      const mounted = await mountIn(t, { [position]: listener })
      for (let round = 0; round < 2; round++) {
        t.same(await (await (await openSocket(t, mounted)).init()).run('{ me { id } }'), { data: { me: null } })
        if (name === 'graphql-ws') {
          const socket = await (await openSocket(t, mounted, { path: '/host' })).init()
          t.same(await socket.run('{ hello }'), { data: { hello: 'of the host' } })
        } else {
          const socket = new WebSocket(`ws://${await hostOf(mounted)}/host`)
          const [message] = await once(socket, 'message')
          t.equal(String(message), 'of the host')
          socket.terminate()
        }
        t.ok(await isRejected(mounted, '/other'))
      }
    })
  }
}

nightly('9 sockets work if the host rewrites URLs', async (t) => {
  const rewriteUrl: FastifyServerOptions['rewriteUrl'] = ({ url }) => {
    if (url === '/fails') throw new Error('of the host')
    // Applied to its own result, it would return another path.
    return url === '/v0/graphql' ? '/graphql' : url === '/graphql' ? '/v0/graphql' : url!.replace(/^\/v1/, '')
  }
  for (const after of [listeners['ws with a path'], undefined]) {
    const mounted = await mountIn(t, { options: { rewriteUrl }, ...after && { after } })
    for (const path of ['/v1/graphql', '/v1/graphql?a=/b', '/v0/graphql']) {
      t.same(await (await (await openSocket(t, mounted, { path })).init()).run('{ me { id } }'), { data: { me: null } })
    }
    t.ok(await isRejected(mounted, '/v1/v1/graphql'))
    if (after) t.ok(await isRejected(mounted, '/fails'))
  }
})

nightly('9 the path of the socket is as flexible as that of the host\'s router', async (t) => {
  const lenient = await mountIn(
    t, { options: { routerOptions: { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true } } }
  )
  for (const path of ['/GraphQL', '/graphql/?a', '//graphql']) {
    t.same(await (await (await openSocket(t, lenient, { path })).init()).run('{ me { id } }'), { data: { me: null } })
  }
  const strict = await mountIn(t, {})
  for (const path of ['/GraphQL', '/graphql/', '//graphql']) t.ok(await isRejected(strict, path), path)
})

nightly('9 sockets work if a hook of the host replaces request.raw', async (t) => {
  const mounted = await mountIn(
    t, { before: (app) => app.addHook('onRequest', async (request) => { request.raw = Object.create(request.raw) }) }
  )
  t.same(await (await (await openSocket(t, mounted)).init()).run('{ me { id } }'), { data: { me: null } })
  t.equal((await mounted.app.inject({ url: '/graphql?query={me{id}}' })).statusCode, 200)
})

nightly('7.7 each of two mounts has the socket under its own prefix', async (t) => {
  const app = Fastify({ pluginTimeout: 0, forceCloseConnections: true })
  t.teardown(() => app.close())
  const mount = async (prefix: string) => ({
    prefix,
    schema: uniqueSchema('mount'),
    databaseUrl: await testDatabaseUrl(),
    uploadsDir: temporaryFolder(),
    poolSize: 2,
    decoratorName: prefix.slice(1),
    admin: { email: `${prefix.slice(1)}@example.com`, password: 'horse battery staple' },
  })
  const options = [await mount('/one'), await mount('/two')]
  for (const each of options) await app.register(usherPlugin, each)
  for (const { prefix } of options) {
    const mounted = { app, prefix }
    const socket = await (await openSocket(t, mounted)).init()
    t.same(await socket.run('{ users { nodes { email } } }'), {
      data: { users: { nodes: [{ email: `${prefix.slice(1)}@example.com` }] } },
    })
    socket.socket.terminate()
  }
  const refused = new WebSocket(`ws://${await hostOf({ app })}/graphql`, 'graphql-ws')
  const [error] = await once(refused, 'open').catch((error) => [error])
  t.equal(error.message, 'Unexpected server response: 404')
})

t.test('8 a node that stops closes its sockets with 1001', async (t) => {
  const usher = await createUsher(t)
  const sockets = await Promise.all(
    [...protocols, ...protocols].map(async (protocol) => (await openSocket(t, usher, { protocol })).init())
  )
  for (const socket of sockets) socket.start('1', 'subscription { postCreated { title } }')
  await Promise.all(sockets.map((socket) => socket.settle()))
  const deaf = await openSocket(t, usher)
  deaf.socket.pause()
  const since = performance.now()
  await usher.app.close()
  // ws would wait up to thirty seconds for the other side.
  t.ok(performance.now() - since < 20_000)
  for (const socket of sockets) t.equal(await socket.closed, 1001)
})

nightly('8 a handshake in progress while the node stops gets 503', async (t) => {
  const app = Fastify({ pluginTimeout: 0, forceCloseConnections: true })
  const arrived = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  app.addHook('onRequest', async (request) => {
    if (!request.headers.upgrade) return
    arrived.resolve()
    await goOn.promise
  })
  await app.register(usherPlugin, {
    databaseUrl: await testDatabaseUrl(), schema: uniqueSchema('stop'), uploadsDir: temporaryFolder(), poolSize: 2,
  })
  await app.ready()
  const raw = await talk(t, { app })
  raw.write('GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-ws\r\n\r\n')
  await arrived.promise
  const closed = app.close()
  await new Promise((resolve) => setImmediate(resolve))
  goOn.resolve()
  t.match(await raw.end(), /^HTTP\/1\.1 503 /)
  await closed
})

/** Opens a connection for raw bytes. */
async function talk (t: Test, usher: Pick<TestUsher, 'app'>) {
  const [host, port] = (await hostOf(usher)).split(':')
  const socket = connect(Number(port), host).setEncoding('latin1')
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  let text = ''
  let wake = () => {}
  socket.on('data', (chunk) => {
    text += chunk
    wake()
  })
  const closed = once(socket, 'close')
  return {
    write: (chunk: string) => socket.write(chunk),
    reset: () => socket.resetAndDestroy(),

    /** Returns the received text as soon as it matches. */
    async read (until: RegExp): Promise<string> {
      while (!until.test(text)) await new Promise<void>((resolve) => { wake = resolve })
      const found = text
      text = ''
      return found
    },

    /** Returns the received text when the server has closed the connection. */
    async end (): Promise<string> {
      await closed
      return text
    },
  }
}
