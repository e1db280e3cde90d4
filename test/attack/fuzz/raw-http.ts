import { setTimeout as delay } from 'node:timers/promises'
import type { Actor } from '../actors.ts'
import { forbiddenMark, type Attack, type Lane } from '../context.ts'
import { awaitReply, check } from '../exchange.ts'
import type { HttpConnection } from '../http-connection.ts'
import type { Reply } from '../reply-parser.ts'
import type { Random } from '../random.ts'

const NAME = 'raw-http'
// A mutated request may be incomplete. Then it gets no response before the connection ends.
const [ANSWER_MS, INCOMPLETE_MS] = [10_000, 200]
const END = '\r\n\r\n'

interface Shape {
  readonly bytes: string
  /** What is sent after the first response. */
  readonly then?: string
  /** The allowed statuses of the first response. If undefined, any status is allowed, but there must be a response. */
  readonly status?: readonly number[]
  /** Whether it is also correct not to respond, because the request is incomplete. */
  readonly mayBeSilent?: boolean
  /** Whether the bytes that follow must not be handled as another request. */
  readonly hidesRequest?: boolean
}

/**
 * Requests that no HTTP client sends: malformed heads, ambiguous lengths, upgrades, CONNECT, huge and repeated headers.
 */
export const rawHttp: Attack = {
  name: NAME,
  weight: 40,
  async run (lane) {
    const { random, findings } = lane
    const shape = random.pick(shapes)(random, smuggled(random, lane.cast.admin))
    const bytes = shape.status === undefined && random.chance(0.4) ? random.mutate(shape.bytes) : shape.bytes
    const connection = await lane.open()
    const first = connection.reply()
    first.catch(() => {})
    await sendInPieces(random, connection, bytes)
    // Node.js drops the requests of a client that closes its half of the connection, so the client closes it last.
    const timeoutMs = shape.status && !shape.mayBeSilent ? ANSWER_MS : INCOMPLETE_MS
    await Promise.race([first.catch(() => {}), delay(timeoutMs, undefined, { ref: false })])
    connection.socket.end(shape.then ?? '')
    const reply = await awaitReply(first)
    await drain(connection)
    if (!reply) {
      findings.count(NAME, 'closed')
      if (shape.status && !shape.mayBeSilent) {
        findings.violation('contract', NAME, `no response; must be ${shape.status.join(' or ')}`, bytes)
      }
      return
    }
    check(lane, NAME, reply, () => bytes)
    checkShape(lane, shape, reply, connection, bytes)
  },
}

function checkShape (
  { findings }: Lane, { status, hidesRequest }: Shape, reply: Reply, { unexpected }: HttpConnection, bytes: string
): void {
  if (status && !status.includes(reply.status)) {
    findings.violation('contract', NAME, `must be ${status.join(' or ')}, got ${reply.status}`, bytes)
  }
  // The mark in the database also shows whether the hidden request was executed.
  if (hidesRequest && unexpected.some((other) => other.status === 201)) {
    findings.violation('smuggling', NAME, 'a hidden request was executed', bytes)
  }
}

async function sendInPieces (random: Random, connection: HttpConnection, bytes: string): Promise<void> {
  if (random.chance(0.85)) return connection.send(bytes)
  for (let at = 0; at < bytes.length; await new Promise((resolve) => setImmediate(resolve))) {
    connection.send(bytes.slice(at, at += 1 + random.below(200)))
  }
}

async function drain (connection: HttpConnection): Promise<void> {
  const timer = setTimeout(() => connection.socket.destroy(), 2000)
  await connection.closed
  clearTimeout(timer)
}

// The hidden request has a valid token and a name that must never be stored. A node that executes it has misjudged
// where a request begins.
function smuggled (random: Random, { authorization }: Actor): string {
  const body = JSON.stringify({ name: forbiddenMark(random), email: `deny-${random.word(12)}@example.org` })
  return `POST /api/users HTTP/1.1\r\nhost: localhost\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}${END}${body}`
}

type MakeShape = (random: Random, hidden: string) => Shape

const post = (...lines: string[]) =>
  ['POST /graphql HTTP/1.1', 'host: localhost', 'content-type: application/json', ...lines].join('\r\n') + END
const get = (...lines: string[]) => ['GET /api/users?limit=1 HTTP/1.1', 'host: localhost', ...lines].join('\r\n') + END

/**
 * A request with an ambiguous length. RFC 9112 6.3 demands that it is rejected, or at least that the connection is
 * closed after it.
 */
const ambiguous = (...lines: string[]): MakeShape =>
  (_, hidden) => ({ bytes: `${post(...lines)}0${END}${hidden}`, status: [400], hidesRequest: true })

const shapes: readonly MakeShape[] = [
  ambiguous('content-length: 5', 'transfer-encoding: chunked'),
  ambiguous('transfer-encoding: chunked', 'content-length: 5'),
  ambiguous('content-length: 5', 'content-length: 6'),
  ambiguous('content-length: 5, 6'),
  ambiguous('content-length: +5'),
  ambiguous('content-length: -1'),
  ambiguous('content-length: 0x5'),
  ambiguous('content-length: 5 5'),
  ambiguous('transfer-encoding: chunked, identity'),
  ambiguous('transfer-encoding : chunked'),
  ambiguous('transfer-encoding: xchunked'),
  ambiguous('transfer-encoding:\x0bchunked'),
  ambiguous('content-length : 5'),
  ambiguous('x: y\rtransfer-encoding: chunked'),
  ambiguous(' folded: header', 'content-length: 5'),
  // Malformed chunked bodies.
  (_, hidden) => ({
    bytes: `${post('transfer-encoding: chunked')}5\r\n{}${END}0${END}${hidden}`, hidesRequest: true, status: [200, 400],
  }),
  (_, hidden) =>
    ({ bytes: `${post('transfer-encoding: chunked')}-1\r\n{}\r\n0${END}${hidden}`, status: [400], hidesRequest: true }),
  (_, hidden) => ({
    bytes: `${post('transfer-encoding: chunked')}2;${'x'.repeat(20_000)}\r\n{}\r\n0${END}${hidden}`,
    status: [400, 413],
    hidesRequest: true,
  }),
  (_, hidden) => ({
    bytes: `${post('transfer-encoding: chunked')}ffffffffffffffffff\r\n${hidden}`, status: [400], hidesRequest: true,
  }),
  (_, hidden) =>
    ({ bytes: `${post('transfer-encoding: chunked')}2\n{}\n0\n\n${hidden}`, status: [400], hidesRequest: true }),
  (_, hidden) => ({ bytes: `${post(`content-length: ${hidden.length}`)}${hidden}`, status: [200], hidesRequest: true }),
  (_, hidden) => ({ bytes: `${get(`content-length: ${hidden.length}`)}${hidden}`, status: [200], hidesRequest: true }),
  // Host headers (RFC 9112 3.2).
  () => ({ bytes: `GET /api/users HTTP/1.1${END}`, status: [400] }),
  () => ({ bytes: get('host: another'), status: [400] }),
  () => ({ bytes: `GET /health/live HTTP/1.0${END}`, status: [200] }),
  // Methods and targets.
  (random) => ({
    bytes:
      `CONNECT ${random.pick(['example.com:443', '127.0.0.1:22', '/', '/graphql'])} HTTP/1.1\r\nhost: localhost${END}`,
    status: [400, 404, 405, 501],
  }),
  () => ({ bytes: `TRACE /api/users HTTP/1.1\r\nhost: localhost${END}`, status: [400, 404, 405] }),
  () => ({ bytes: `OPTIONS * HTTP/1.1\r\nhost: localhost${END}`, status: [200, 204, 400, 404, 405] }),
  (random) => ({
    bytes: `${random.word(5).toUpperCase()} /api/users HTTP/1.1\r\nhost: localhost${END}`, status: [400, 404, 405],
  }),
  (random) => ({ bytes: `GET ${random.pick(targets)} HTTP/1.1\r\nhost: localhost${END}` }),
  (random) => ({ bytes: `GET /${random.mutate('api/users/%E4?role=user&limit=1')} HTTP/1.1\r\nhost: localhost${END}` }),
  () => ({ bytes: `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: localhost${END}`, status: [431] }),
  () => ({ bytes: `GET /api/users HTTP/9.9\r\nhost: localhost${END}`, status: [400, 505] }),
  () => ({ bytes: `PRI * HTTP/2.0\r\n\r\nSM${END}`, status: [400, 405, 505] }),
  // Headers.
  () => ({ bytes: get(`x: ${'y'.repeat(20_000)}`), status: [431] }),
  (random) =>
    ({ bytes: get(...Array.from({ length: 100 + random.below(3000) }, (_, index) => `h${index}: ${index}`)) }),
  (random) => ({ bytes: get(`accept: ${random.mutate('application/vnd.api.v2+json;q=0.5, */*;q=0.1')}`) }),
  (random) => ({
    bytes: get(
      `cookie: usher_session=${random.mutate('0190c2a5-0000-7000-8000-000000000000.AAAA.0.AAAA')}`,
      `if-none-match: ${random.mutate('"abc", W/"x"')}`
    ),
  }),
  () => ({ bytes: get(`accept: ${'a/b;q=0.1,'.repeat(1500)}`) }),
  () => ({ bytes: get('x\0y: z'), status: [400] }),
  () => ({ bytes: get('authorization: Bearer a', 'authorization: Bearer b') }),
  () => ({ bytes: get('expect: 200-ok'), status: [417] }),
  () => ({ bytes: post('expect: 100-continue', 'content-length: 2') + '{}', status: [200] }),
  // Unsupported upgrades, several on one connection.
  (random) => ({
    bytes: get(
      'connection: upgrade', `upgrade: ${random.pick(['h2c', 'websocket, h2c', 'TLS/1.2', '', 'x'.repeat(3000)])}`
    )
      .repeat(1 + random.below(15)),
  }),
  () => ({
    bytes: get('connection: upgrade, http2-settings', 'upgrade: h2c', 'http2-settings: AAMAAABkAARAAAAAAAIAAAAA')
      .repeat(12),
  }),
  // An unsupported upgrade while an earlier request has no response yet, and a request after that response.
  () => ({ bytes: get() + get('connection: upgrade', 'upgrade: h2c'), then: get(), status: [200] }),
  // Bytes that are not HTTP.
  (random) => ({ bytes: random.bytes(1 + random.below(300)).toString('latin1') }),
  () => ({ bytes: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', status: [400] }),
  // Incomplete requests.
  (random) => ({ bytes: get().slice(0, random.below(40)), mayBeSilent: true }),
  () => ({ bytes: `${post('content-length: 100')}{"query":`, mayBeSilent: true }),
  // Pipelined requests followed by garbage, which get their responses first.
  (random) => ({ bytes: `${get().repeat(1 + random.below(30))}${random.word(20)}${END}`, status: [200] }),
]

const targets = [
  '*', '//', '/../../etc/passwd', '/%', '/%zz', '/%00', '/%c0%af', '/api//users', '/api/users/', '/API/USERS',
  '/api/users?limit=1&limit=2', '/api/users?role[]=a', '/api/users#x',
  'http://example.com/api/users', 'https:///', '/api/users/%2e%2e/', '/docs/../../package.json',
  '/docs/static/..%2f..%2fpackage.json', '/graphql/..;/x', '/\\', '/api/users?after=%00', '/api/uploads/..%2f..%2fx',
  '?', '/api/users?limit=1e3',
]
