import { randomBytes } from 'node:crypto'
import { STATUS_CODES, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { LogController, type FastifyHttpOptions, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Settings } from './settings.ts'
import type { SetHeaders } from './security-headers.ts'

const HEADERS_MS = 15_000
const IDLE_MS = 60_000
const REQUEST_MS = 3_600_000
const HEADER_BYTES = 16 * 1024
const LINGER_MS = 2_000

/** How the node listens, logs, and answers what never becomes a request. */
export function serverOptions ({ LOG_LEVEL, TRUST_PROXY }: Settings, setHeaders: SetHeaders): FastifyHttpOptions<Server> {
  return {
    logger: {
      level: LOG_LEVEL,
      redact: ['headers.authorization', 'headers.cookie', 'headers["set-cookie"]'],
      serializers: { req: describeRequest },
    },
    logController: new AccessLog(),
    genReqId: createRequestIds(),
    trustProxy: trustProxy(TRUST_PROXY),
    // A migration may take its time; the database has deadlines of its own.
    pluginTimeout: 0,
    // A slow and long upload is legitimate, as long as it goes on.
    requestTimeout: REQUEST_MS,
    connectionTimeout: IDLE_MS,
    // A request without `Host` gets an answer of our shape, see `http-defaults.ts`.
    http: { headersTimeout: HEADERS_MS, maxHeaderSize: HEADER_BYTES, requireHostHeader: false },
    // While the node drains, a request that still comes in is served, and its connection closed.
    return503OnClosing: false,
    // An id of any length is an unknown one (contract 2.2); no route has a costly pattern.
    routerOptions: { maxParamLength: HEADER_BYTES },
    // The router's: a malformed percent-escape. No hook has run.
    frameworkErrors: (_, request: FastifyRequest, reply: FastifyReply) => {
      setHeaders(request, reply)
      reply.status(400).send({ errors: ['address is malformed'] })
    },
    clientErrorHandler: answerBadRequest,
    rewriteUrl: toOriginForm,
  }
}

// Two lines a request at level info, Fastify's way, cost half of the throughput. One at debug remains; failures
// of the server are logged where they are translated.
class AccessLog extends LogController {
  override incomingRequest (): void {}

  override requestCompleted (err: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
    reply.log.debug({ req: request, res: reply, responseTime: reply.elapsedTime, err }, 'request completed')
  }

  // Clients break off downloads all the time. Any other error is a stream of the node that has failed.
  override streamError (err: NodeJS.ErrnoException, _: FastifyRequest, reply: FastifyReply): void {
    reply.log[err.code === 'ERR_STREAM_PREMATURE_CLOSE' ? 'debug' : 'warn']({ err }, 'a response was cut off')
  }
}

// No header and no query string: both may carry secrets.
function describeRequest ({ method, url, ip, host }: FastifyRequest) {
  return { method, url: url.split('?', 1)[0]!, host, remoteAddress: ip }
}

// RFC 9112 3.2.2: a server accepts the form that is sent to proxies as well, whose host counts instead of the header's.
function toOriginForm ({ url, headers }: IncomingMessage): string {
  const [, host, path = ''] = /^https?:\/\/([^/?#]+)(.*)$/i.exec(url!) ?? []
  if (host === undefined) return url!
  headers.host = host
  return path.startsWith('/') ? path : `/${path}`
}

// The caller's `x-request-id`, or a short one that no other node makes.
function createRequestIds (): (request: IncomingMessage) => string {
  const node = randomBytes(6).toString('base64url')
  let count = 0
  return ({ headers }) => {
    const given = headers['x-request-id'] as string | undefined
    return given !== undefined && /^[\w.:-]{1,64}$/.test(given) ? given : `${node}-${(count++).toString(36)}`
  }
}

/** Whom `X-Forwarded-*` is believed, as Fastify takes it: `false` for nobody. */
export function trustProxy (networks: readonly string[]): boolean | string[] {
  const named = networks.filter((network) => network !== 'true' && network !== 'false')
  return networks.includes('true') || (named.length > 0 && named)
}

// The parser's errors: there is no request to reply to, only the connection.
function answerBadRequest ({ code }: { code: string }, socket: Socket): void {
  if (code === 'ECONNRESET' || !socket.writable) return
  const [status, answer] = refusals[code] ?? [400, { errors: ['request is not valid HTTP'] }]
  answerRaw(socket, status, answer)
}

/**
 * Responds on a connection that has no request to reply to, and closes it. What the client is still sending is read and
 * discarded until it closes its side, for two seconds at most: closing at once would reset the connection, and the client
 * could lose the response (RFC 9112 9.6).
 */
export function answerRaw (socket: Duplex, status: number, answer: object, headers: readonly string[] = []): void {
  const body = JSON.stringify(answer)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...headers,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  // The parser's listener is replaced: it would report each further chunk as another error.
  socket.removeAllListeners('data').on('data', () => {}).resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

const refusals: Record<string, [status: number, answer: object]> = {
  HPE_HEADER_OVERFLOW: [431, { error: 'The address and headers are too large', code: 'HEADERS_TOO_LARGE' }],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, { error: 'The request body is too large', code: 'PAYLOAD_TOO_LARGE' }],
  ERR_HTTP_REQUEST_TIMEOUT: [408, { error: 'The request took too long', code: 'REQUEST_TIMEOUT' }],
}
