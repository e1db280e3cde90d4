import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { randomBytes, randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { createSender, WebhookGone } from '../../plugins/outbox/webhooks.ts'
import { readWebhooks } from '../../schema/options/webhooks.ts'
import { slow } from '../helpers/deadlines.ts'

// An event counts as delivered if a complete head with a 2xx status arrives: Standard Webhooks gives no meaning to the
// body. Everything else is a failure, after which the event is sent again.

const secret = `whsec_${randomBytes(24).toString('base64')}`
const MIB = 1024 * 1024

/** Starts a receiver that answers with bytes, whatever they are. */
async function start (t: Test, answer: (socket: Socket) => unknown): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
}

/** Sends an event. Returns the error. */
async function deliver (url: string, signal: AbortSignal = AbortSignal.timeout(60_000)): Promise<unknown> {
  const [webhook] = readWebhooks([{ url, secret, allowPrivateAddresses: true }])
  const clock = { now: () => Date.now() }
  const options = { deadlines: { ...slow, webhookBody: 200 } }
  const send = createSender({ database: { clock }, options } as never, webhook!)
  const delivery = { id: randomUUID(), type: 'user.created', subject: '', data: {}, createdAt: new Date() }
  return send(delivery as never, signal).then(() => undefined, (error: unknown) => error)
}

const head = (status: string, ...lines: string[]) => `HTTP/1.1 ${[status, ...lines].join('\r\n')}\r\n\r\n`
const say = (text: string) => (socket: Socket) => socket.end(text)

const delivered: Readonly<Record<string, (socket: Socket) => unknown>> = {
  'no body': say(head('204 No Content')),
  'an empty body': say(head('200 OK', 'Content-Length: 0')),
  'a page': say(`${head('200 OK', 'Content-Type: text/html', 'Content-Length: 13')}<html></html>`),
  'a body that is cut off': say(`${head('200 OK', 'Content-Length: 1000')}half`),
  'chunks that are cut off': say(`${head('202 Accepted', 'Transfer-Encoding: chunked')}ff\r\nhalf`),
  'chunks that are none': say(`${head('200 OK', 'Transfer-Encoding: chunked')}no chunk\r\n`),
  'a body that never comes': (socket) => socket.write(head('200 OK', 'Content-Length: 1000')),
  'an endless body': (socket) => {
    socket.write(head('200 OK'))
    const write = () => { while (!socket.destroyed && socket.write(Buffer.alloc(MIB))); }
    socket.on('drain', write)
    write()
  },
  'a status after 103': say(`${head('103 Early Hints')}${head('200 OK', 'Content-Length: 0')}`),
}

const failed: Readonly<Record<string, (socket: Socket) => unknown>> = {
  'the end of the connection': say(''),
  'an abrupt end of the connection': (socket) => socket.destroy(),
  'half a status line': say('HTTP/1.1 20'),
  'half a head': say('HTTP/1.1 200 OK\r\nContent-Le'),
  'a head without an end': say('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n'),
  'another protocol': say(head('101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket')),
  'only 103': say(head('103 Early Hints')),
  'no HTTP': say('220 mail.example.com ESMTP\r\n'),
  'a page without a head': say('<html></html>\r\n\r\n'),
  'a status that is none': say(head('2000 OK')),
  'the status 099': say(head('099 OK')),
  'a redirect': say(head('302 Found', 'Location: http://127.0.0.1:9/', 'Content-Length: 0')),
  'not modified': say(head('304 Not Modified')),
  'a wrong request': say(head('400 Bad Request', 'Content-Length: 0')),
  'a failure': say(head('500 Internal Server Error', 'Content-Length: 0')),
  'two lengths': say(`${head('200 OK', 'Content-Length: 1', 'Content-Length: 2')}xx`),
  'a giant head': say(head('200 OK', `X: ${'x'.repeat(MIB)}`)),
  'an endless head': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    const write = () => { while (!socket.destroyed && socket.write('X: y\r\n'.repeat(10_000))); }
    socket.on('drain', write)
    write()
  },
}

t.test('12.5 an event is delivered if the head of the answer says so, whatever its body is', async (t) => {
  const before = process.memoryUsage().rss
  await Promise.all(Object.entries(delivered).map(async ([name, answer]) => {
    t.equal(await deliver(await start(t, answer)), undefined, name)
  }))
  t.ok(process.memoryUsage().rss - before < 256 * MIB, 'and takes no memory')
})

t.test('12.5 an answer without a complete head, or with another status, is no delivery', async (t) => {
  await Promise.all(Object.entries(failed).map(async ([name, answer]) => {
    const error = await deliver(await start(t, answer))
    t.ok(error instanceof Error && !(error instanceof WebhookGone), name)
  }))
  t.ok(await deliver(await start(t, say(head('410 Gone')))) instanceof WebhookGone)
  t.ok(await deliver(await start(t, () => {}), AbortSignal.timeout(300)) instanceof Error, 'silence ends with the attempt')
})
