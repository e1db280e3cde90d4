import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import Fastify, { type FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import { serverOptions } from '../../../node/http/server.ts'
import { parseSettings } from '../../../node/settings/settings.ts'
import { createUsher, type TestUsher } from '../../helpers/app.ts'
import { createPost } from '../../helpers/graphql.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

const EVENTS = 'subscription { postCreated { title content } }'
const CONTENT = 'x'.repeat(60_000)

/**
 * Sends the head and body of a request over a new connection. Resolves to its socket when the server has received the
 * head.
 */
async function send (t: Test, { app }: TestUsher, head: string[], body = '', length = body.length): Promise<Socket> {
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  const asked = once(app.server, 'request')
  const fields = ['host: x', ...head.slice(1), ...length ? [`content-length: ${length}`] : []]
  socket.write(`${[`${head[0]} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n${body}`)
  await asked
  return socket
}

interface Line { level: number, msg: string }
const DEBUG = 20

/** Options of servers that log to `lines`. */
const servers: Record<string, (lines: Line[]) => FastifyServerOptions> = {
  'in a host': (lines) => ({ logger: { level: 'debug', stream: createLog(lines) } }),
  'on the node': (lines) => {
    const { logger, ...options } = serverOptions(parseSettings({ LOG_LEVEL: 'debug' }), () => {})
    return { ...options, logger: { ...logger as object, stream: createLog(lines) } } as FastifyServerOptions
  },
}
// Fastify logs these messages for each request. The host decides whether it does.
const OF_FASTIFY = ['incoming request', 'request completed', 'stream closed prematurely']

const createLog = (lines: Line[]) => ({ write: (line: string) => { lines.push(JSON.parse(line)) } })

for (const [where, server] of Object.entries(servers)) {
  t.test(
    `a client that disconnects at any moment causes no error in the log, ${where}`, (t) => disconnect(t, where, server)
  )
}

t.test('the node logs a response that fails', async (t) => {
  const lines: Line[] = []
  const app = Fastify(servers['on the node']!(lines))
  t.teardown(() => app.close())
  app.get('/', (_, reply) => reply.send(Readable.from((async function * () {
    yield 'some'
    throw new Error('the disk is gone')
  })())))
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  await t.rejects(fetch(url).then((response) => response.text()))
  t.match(
    lines.filter(({ level }) => level > DEBUG && level !== 30),
    [{ level: 40, err: { message: 'the disk is gone' }, msg: 'a response was cut off' }]
  )
})

async function disconnect (t: Test, where: string, server: (lines: Line[]) => FastifyServerOptions): Promise<void> {
  const lines: Line[] = []
  const usher = await createUsher(t, {}, server(lines))
  const { app, admin } = usher
  const sql = openSql(t, usher)
  await app.listen({ port: 0, host: '127.0.0.1' })
  await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${admin.id}, n, ${CONTENT} from generate_series(1, 100) n`
  const form = new FormData()
  form.set('description', 'Large')
  form.set('file', new Blob([Buffer.alloc(8_000_000)]), 'large.bin')
  const { fileUrl } = (await fetch(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/api/uploads`, {
    method: 'POST', headers: admin.headers, body: form,
  }).then((response) => response.json())) as { fileUrl: string }

  const authorization = `authorization: ${admin.headers.authorization}`
  const json = 'content-type: application/json'
  const accept = 'accept: text/event-stream'
  const operation = (query: string) => JSON.stringify({ query })
  const inAddress = `GET /graphql?query=${encodeURIComponent(EVENTS)}`
  const all = operation('{ posts(first: 100) { nodes { content } } }')
  const part = '--x\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nabc'
  const requests: Record<string, Parameters<typeof send> extends [unknown, unknown, ...infer Rest] ? Rest : never> = {
    'an event stream by GET': [[inAddress, accept]],
    'an event stream by POST': [['POST /graphql', accept, json, authorization], operation(EVENTS)],
    'an event stream whose body is half sent': [['POST /graphql', accept, json], '{"query":', 100],
    'an event stream that is rejected': [['POST /graphql', accept, json], operation('subscription { nothing }')],
    'an event stream of a query': [['POST /graphql', accept, json], all],
    'a query': [['POST /graphql', json], all],
    'a page': [['GET /graphql', 'accept: text/html']],
    'a wrong method': [['GET /graphql']],
    'a read': [['GET /api/users']],
    'a write whose body is half sent': [['POST /api/users', json, authorization], '{"name":', 100],
    'an upload that is half sent': [
      ['POST /api/uploads', 'content-type: multipart/form-data; boundary=x', authorization], part, 1000,
    ],
    'a download': [[`GET ${fileUrl}`]],
    'an unknown path': [['GET /api/nothing']],
  }
  const connections = () =>
    new Promise<number>((resolve) => { app.server.getConnections((_, count) => resolve(count)) })
  for (const [what, request] of Object.entries(requests)) {
    lines.length = 0
    for (const stage of ['at once', 'after the first bytes', 'while it does not read']) {
      if (request[2] !== undefined && stage !== 'at once') continue
      const [head, ...rest] = request
      const socket = await send(t, usher, head, ...rest)
      if (stage !== 'at once') await once(socket, 'data')
      if (stage === 'while it does not read') {
        socket.pause()
        await createPost(usher, admin)
      }
      socket.resetAndDestroy()
    }
    await until('the connections are closed', async () => await connections() <= 1)
    await createPost(usher, admin)
    t.same(
      lines.filter(({ level, msg }) => level > DEBUG && !(where === 'in a host' && OF_FASTIFY.includes(msg))), [], what
    )
  }
}
