import { randomBytes } from 'node:crypto'
import { STATUS_CODES, type IncomingMessage, type Server } from 'node:http'
import { BlockList, isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { LogController, type FastifyHttpOptions, type FastifyReply, type FastifyRequest } from 'fastify'
import { afterResponses, closeConnection, hasAnswered, type Connection } from '../../plugins/http/raw/connections.ts'
import { clientAddressOf } from '../../plugins/http/client-info.ts'
import { traceIdOf } from '../../plugins/telemetry/trace-ids.ts'
import { methodOf } from '../../schema/http/method.ts'
import { addressOf } from '../../schema/http/network.ts'
import { multiplyNodeDeadlines } from '../process/deadlines.ts'
import type { Settings } from '../settings/settings.ts'
import { redactLine } from './redaction.ts'
import type { SetHeaders } from './security-headers.ts'

const HEADER_BYTES = 16 * 1024

/**
 * Returns the options of the node's Fastify server: logging, limits, and responses to malformed requests.
 * @param stream the destination of the log, by default standard output
 */
export function serverOptions (
  { LOG_LEVEL, TRUST_PROXY, ACCESS_LOG: share, DEADLINE_FACTOR, file }: Settings, setHeaders: SetHeaders,
  stream?: { write (line: string): void }
): FastifyHttpOptions<Server> {
  const { requestHead, idleConnection, request } = multiplyNodeDeadlines(DEADLINE_FACTOR)
  return {
    logger: {
      level: LOG_LEVEL,
      ...stream && { stream },
      serializers: { req: describeRequest },
      hooks: { streamWrite: redactLine },
    },
    logController: share > 0 ? new AccessLog(share) : new FailureLog(),
    genReqId: createRequestIds(),
    trustProxy: trustProxy(TRUST_PROXY),
    // A migration may take long, and the database has its own deadlines.
    pluginTimeout: 0,
    // `connectionTimeout` ends an upload only if it stalls.
    requestTimeout: request,
    connectionTimeout: idleConnection,
    // `http-defaults.ts` responds to a request without `Host`, in the format of the contract.
    http: {
      headersTimeout: requestHead,
      maxHeaderSize: HEADER_BYTES,
      requireHostHeader: false,
      // Node.js ignores it before 24.12. A route of the configuration may listen to `close` of a request, which is then
      // never emitted.
      optimizeEmptyRequests: !file?.options.routes,
    },
    // While the node drains, requests that still arrive are served, and then their connections are closed.
    return503OnClosing: false,
    // An id of any length is just unknown (contract 2.2), and no route has a pattern that would be slow for a long one.
    routerOptions: { maxParamLength: HEADER_BYTES },
    // The router rejects malformed percent-escapes before any hook runs.
    frameworkErrors: (_, request: FastifyRequest, reply: FastifyReply) => {
      setHeaders(request, reply)
      reply.status(400).send({ errors: ['URL is malformed'] })
    },
    clientErrorHandler: answerBadRequest,
    rewriteUrl: toOriginForm,
  }
}

// Fastify's default of two lines per request at level info would halve the throughput. This logs one line at level
// debug. Failures of the server are logged in `plugins/http/errors.ts`.
class FailureLog extends LogController {
  override incomingRequest (): void {}

  override requestCompleted (err: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
    reply.log.debug({ req: request, res: reply, responseTime: reply.elapsedTime, err }, 'request completed')
  }

  // Clients often break off downloads. Any other error is a failure of one of the node's streams.
  override streamError (err: NodeJS.ErrnoException, _: FastifyRequest, reply: FastifyReply): void {
    reply.log[err.code === 'ERR_STREAM_PREMATURE_CLOSE' ? 'debug' : 'warn']({ err }, 'a response was cut off')
  }
}

// Logs a share of the requests at level info, and all failures of the server. A route with the log level `silent` has
// no lines. The address is not logged, because it may contain secrets, and neither is what it consists of.
class AccessLog extends FailureLog {
  readonly #share: number

  constructor (share: number) {
    super()
    this.#share = share
  }

  override requestCompleted (err: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
    const { method, routeOptions: { url: route = 'unknown' } } = request
    const { statusCode: status } = reply
    if (status < 500 && Math.random() >= this.#share) return super.requestCompleted(err, request, reply)
    const traceId = traceIdOf(request.raw)
    const size = reply.getHeader('content-length')
    reply.log.info({
      method: methodOf(method),
      route,
      status,
      ms: Math.round(reply.elapsedTime * 10) / 10,
      // Streams without a known length have none.
      ...size !== undefined && { bytes: Number(size) },
      ...traceId !== undefined && { traceId },
      ...err && { err },
    }, 'request')
  }
}

// Headers and the query string are not logged, because they may contain secrets.
function describeRequest (request: FastifyRequest) {
  const { method, url, host } = request
  return { method, url: url.split('?', 1)[0]!, host, remoteAddress: clientAddressOf(request) }
}

// RFC 9112 3.2.2: a server must also accept the absolute form that is sent to proxies. Its host replaces the `Host`
// header.
function toOriginForm ({ url, headers }: IncomingMessage): string {
  const [, host, path = ''] = /^https?:\/\/([^/?#]+)(.*)$/i.exec(url!) ?? []
  if (host === undefined) return url!
  headers.host = host
  return path.startsWith('/') ? path : `/${path}`
}

// The id of a request is the client's `x-request-id`, or a short one that is unique among all nodes.
function createRequestIds (): (request: IncomingMessage) => string {
  const node = randomBytes(6).toString('base64url')
  let count = 0
  return ({ headers }) => {
    const id = headers['x-request-id'] as string | undefined
    return id !== undefined && /^[\w.:-]{1,64}$/.test(id) ? id : `${node}-${(count++).toString(36)}`
  }
}

const ranges: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/**
 * Returns Fastify's option `trustProxy`: whether the `X-Forwarded-*` headers of a proxy count, `true` for all proxies,
 * `false` for none. Given the networks, Fastify would not recognise a proxy whose address has a port.
 */
export function trustProxy (networks: readonly string[]): boolean | ((proxy: string) => boolean) {
  const named = networks.filter((network) => network !== 'true' && network !== 'false')
    .flatMap((network) => ranges[network] ?? [network])
  if (networks.includes('true') || named.length === 0) return networks.includes('true')
  const trusted = new BlockList()
  for (const network of named) {
    const [text = '', bits] = network.split('/')
    const address = addressOf(text)
    const longest = isIP(address) === 4 ? 32 : 128
    // The bits of an IPv4 address that is mapped into IPv6 follow 96 others.
    const mapped = isIP(text) === 6 && longest === 32 ? 96 : 0
    trusted.addSubnet(address, bits === undefined ? longest : Math.max(0, Number(bits) - mapped), familyOf(address))
  }
  return (proxy) => {
    const address = addressOf(proxy)
    return isIP(address) > 0 && trusted.check(address, familyOf(address))
  }
}

const familyOf = (address: string) => isIP(address) === 4 ? 'ipv4' as const : 'ipv6' as const

// The connections with an error, of which Node reports a timeout as well if an earlier response takes long.
const answered = new WeakSet<Connection>()

// Responds to errors of the HTTP parser, for which there is no request, only a connection.
function answerBadRequest ({ code }: { code: string }, socket: Connection): void {
  if (code === 'ECONNRESET' || !socket.writable || answered.has(socket)) return
  answered.add(socket)
  const [status, body] = rejections[code] ?? [400, { errors: ['request is not valid HTTP'] }]
  // The parser would report each further chunk as another error.
  socket.removeAllListeners('data').on('data', () => {}).pause()
  afterResponses(socket, () => {
    if (!hasAnswered(socket)) sendRaw(socket, status, body)
    else if (socket._httpMessage) socket.destroy()
    else closeConnection(socket)
  })
}

/** Responds on a connection that has no request to reply to, and closes it. */
export function sendRaw (socket: Duplex, status: number, payload: object, headers: readonly string[] = []): void {
  const body = JSON.stringify(payload)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...headers,
  ]
  closeConnection(socket, `${head.join('\r\n')}\r\n\r\n${body}`)
}

const rejections: Record<string, [status: number, body: object]> = {
  HPE_HEADER_OVERFLOW: [431, { error: 'The address and headers are too large', code: 'HEADERS_TOO_LARGE' }],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, { error: 'The request body is too large', code: 'PAYLOAD_TOO_LARGE' }],
  ERR_HTTP_REQUEST_TIMEOUT: [408, { error: 'The request took too long', code: 'REQUEST_TIMEOUT' }],
}
