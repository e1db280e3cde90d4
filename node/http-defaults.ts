import cors, { type FastifyCorsOptions } from '@fastify/cors'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ExpectationFailed, InvalidInput, MethodNotAllowed, NotFound } from '../schema/errors.ts'
import errors from '../plugins/errors.ts'
import { answerRaw } from './http-server.ts'
import type { SetHeaders } from './security-headers.ts'

export interface HttpDefaultsOptions {
  /** Origins that may read answers from a browser, or `*`; none where it is empty. */
  origins: readonly string[]
  /** Sets the security headers: the result of `createHeaders`. */
  setHeaders: SetHeaders
}

/** What the node does that is a host's affair elsewhere: security headers, CORS, and an answer to every path. */
export default fp<HttpDefaultsOptions>(async function httpDefaults (app, { origins, setHeaders }) {
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
}, { name: 'usher-http-defaults' })

// Node keeps the first one and drops the others.
function isRepeated (name: string, rawHeaders: readonly string[]): boolean {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index]!
    if (header.length === name.length && header.toLowerCase() === name) count++
  }
  return count > 1
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
