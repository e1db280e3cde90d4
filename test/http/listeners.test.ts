import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import drain from '../../node/http/drain.ts'
import { createListeners } from '../../node/http/listeners.ts'
import { serverOptions } from '../../node/http/server.ts'
import { createHeaders } from '../../node/http/security-headers.ts'
import { parseSettings } from '../../node/settings/settings.ts'
import { slowStop } from '../helpers/deadlines.ts'
import type { ManyConnections } from '../helpers/many-connections.ts'

const CONNECTIONS = 320
const HOST = '127.0.0.1'

/** Starts a server as a node does, with a route that takes a while, and longer for each request. */
async function startServer (t: Test, { shares, port = 0 }: { shares?: boolean, port?: number } = {}) {
  const lines: { level: number, msg: string }[] = []
  const log = { write: (line: string) => { lines.push(JSON.parse(line)) } }
  const app = Fastify(serverOptions(parseSettings({ LOG_LEVEL: 'error' }), createHeaders([]), log))
  const listeners = createListeners(app.server, { shares, deadlines: slowStop })
  t.teardown(() => app.close())
  await app.register(drain, { listeners, proxied: false, deadlines: slowStop })
  let [asked, answered] = [0, 0]
  app.get('/', async () => {
    await delay(100 + asked++)
    answered++
    return 'here'
  })
  const url = await listeners.listen(app, HOST, port)
  return { app, port: Number(new URL(url).port), answered: () => answered, lines }
}

/** Opens connections at the same time, none of which can have been accepted when this returns. */
function open (t: Test, port: number): Socket[] {
  const sockets = Array.from({ length: CONNECTIONS }, () => connect(port, HOST))
  t.teardown(() => { for (const socket of sockets) socket.destroy() })
  return sockets
}

/**
 * Opens connections from another thread, and returns when all are established. None has been accepted then, because
 * this thread waits for it. Resolves with what each client has received.
 */
function openFromThread (t: Test, port: number): Promise<string[]> {
  const established = new Int32Array(new SharedArrayBuffer(4))
  const workerData: ManyConnections = { port, host: HOST, count: CONNECTIONS, established }
  const thread = new Worker(new URL('../helpers/many-connections.ts', import.meta.url), { workerData })
  t.teardown(() => thread.terminate())
  const answers = once(thread, 'message').then(([answers]) => answers as string[])
  Atomics.wait(established, 0, 0)
  return answers
}

t.test('14.1 a node accepts many connections in a turn of the event loop', async (t) => {
  const { app, port } = await startServer(t)
  const accepted = new Set<Socket>()
  app.server.on('connection', (socket) => accepted.add(socket))
  open(t, port)
  let turns = 0
  for (; accepted.size < CONNECTIONS; turns++) await turn()
  if (process.platform === 'linux') t.ok(turns < CONNECTIONS / 4, `${CONNECTIONS} connections in ${turns} turns`)
})

for (const shares of [undefined, false]) {
  const one = shares === false ? ' with one listener' : ''
  t.test(`8 a node that stops${one} answers those who have connected and were not accepted yet`, async (t) => {
    const { app, port, answered } = await startServer(t, { ...shares === false && { shares } })
    const answers = openFromThread(t, port)
    await app.close()
    t.equal(answered(), CONNECTIONS, 'closing waits for all of them')
    const texts = await answers
    t.equal(texts.filter((answer) => answer.startsWith('HTTP/1.1 200') && answer.endsWith('here')).length, CONNECTIONS)
    t.ok(texts.every((answer) => /^connection: close$/im.test(answer)))
    const late = connect(port, HOST)
    const [{ code }] = await once(late, 'error') as [NodeJS.ErrnoException]
    t.equal(code, 'ECONNREFUSED')
  })
}

t.test('14.1 two nodes cannot listen on the same port', async (t) => {
  const { port } = await startServer(t)
  await t.rejects(startServer(t, { port }), { code: 'EADDRINUSE' })
})

t.test('14.1 a connection that cannot be accepted does not end the node', async (t) => {
  const { app, port, lines } = await startServer(t)
  for (let times = 0; times < 3; times++) app.server.emit('error', new Error('accept EMFILE'))
  t.match(lines, [{ level: 50, msg: 'A connection could not be accepted' }], 'the log says so once')
  t.equal((await fetch(`http://${HOST}:${port}/`)).status, 200)
})
