import cors, { type FastifyCorsOptions } from '@fastify/cors'
import helmet from '@fastify/helmet'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ExpectationFailed, InvalidInput, MethodNotAllowed, NotFound } from '../schema/errors.ts'
import errors from './errors.ts'
import { answerRaw } from './http-server.ts'

const YEAR_SECONDS = 31_536_000

export interface FrontOptions {
  /** Origins that may read answers from a browser, or `*`; none where it is empty. */
  origins: readonly string[]
  /** Of `createHeaders`. */
  setHeaders: SetHeaders
}

/** Sets the security headers, and the request's id. */
export type SetHeaders = (request: FastifyRequest, reply: FastifyReply) => void

/** What the node does that is a host's affair elsewhere: security headers, CORS, and an answer to every path. */
export default fp<FrontOptions>(async function front (app, { origins, setHeaders }) {
  app.addHook('onRequest', (request, reply, done) => {
    setHeaders(request, reply)
    const { headers, rawHeaders, httpVersion } = request.raw
    // RFC 9112 3.2, and RFC 9110 10.1.1; Node would answer them without a word.
    if (isRepeated('host', rawHeaders)) done(new InvalidInput('host header must not be repeated'))
    else if (headers.host === undefined && httpVersion === '1.1') done(new InvalidInput('host header is required'))
    else if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') done(new ExpectationFailed())
    else done()
  })
  app.server.on('checkExpectation', (request, response) => { app.server.emit('request', request, response) })
  // Without a listener Node closes the connection without an answer.
  app.server.on('connect', (_, socket) => {
    // A client that hangs up before it has its answer is normal; without a listener its reset would end the process.
    socket.on('error', () => {})
    const { message, code, statusCode } = new MethodNotAllowed('CONNECT')
    answerRaw(socket, statusCode!, { error: message, code }, ['Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS'])
  })
  if (origins.length > 0) await app.register(cors, { delegator: corsDelegator(origins) })
  await app.register(errors)
  app.setNotFoundHandler(() => { throw new NotFound() })
}, { name: 'usher-front' })

// Node keeps the first one and drops the others.
function isRepeated (name: string, rawHeaders: readonly string[]): boolean {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index]!
    if (header.length === name.length && header.toLowerCase() === name) count++
  }
  return count > 1
}

/** For the origins of `FrontOptions`. */
export async function createHeaders (origins: readonly string[]): Promise<SetHeaders> {
  const secure = await securityHeaders(origins.length > 0)
  // RFC 6797 7.2: never over plain HTTP.
  const { 'strict-transport-security': _, ...plain } = secure
  return (request, reply) => {
    reply.headers(request.protocol === 'https' ? secure : plain).header('x-request-id', request.id)
  }
}

/**
 * The headers that @fastify/helmet sets, taken from it once: it computes them anew for each request, which costs
 * half of the throughput. Set as ordinary headers, they also leave a page its own policy. Those that speak to
 * browsers of the past or to pages alone are left out.
 */
async function securityHeaders (shared: boolean): Promise<Record<string, string>> {
  const probe = Fastify()
  await probe.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    // An origin that may read an upload by a script may also show it.
    crossOriginResourcePolicy: { policy: shared ? 'cross-origin' : 'same-origin' },
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    strictTransportSecurity: { maxAge: YEAR_SECONDS },
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xFrameOptions: { action: 'deny' },
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  })
  probe.get('/', (_, reply) => reply.send(reply.raw.getHeaders()))
  return (await probe.inject('/')).json()
}

function corsDelegator (origins: readonly string[]) {
  const any = origins.includes('*')
  const options: FastifyCorsOptions = {
    origin: any ? '*' : [...origins],
    // The session cookie serves named origins only.
    credentials: !any,
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    allowedHeaders: ['Authorization', 'Content-Type', 'If-Match', 'If-None-Match', 'Range', 'X-Request-Id'],
    exposedHeaders: ['Link', 'Location', 'ETag', 'WWW-Authenticate', 'Retry-After', 'X-Request-Id', 'Content-Disposition', 'Content-Range'],
    maxAge: 7200,
  }
  const plain = { ...options, preflight: false }
  // An OPTIONS request that is no preflight is answered like any other method.
  return ({ headers }: FastifyRequest, done: (error: null, options: FastifyCorsOptions) => void) =>
    done(null, headers.origin && headers['access-control-request-method'] ? options : plain)
}
