import fp from 'fastify-plugin'
import { ExpectationFailed, InvalidInput, MethodNotAllowed, NotFound } from '../../schema/http/errors.ts'
import { takeOverConnection } from '../../plugins/http/raw/connections.ts'
import errors from '../../plugins/http/errors.ts'
import { rejectPreflight } from '../../plugins/http/preflight.ts'
import type { RenderMissing } from '../pages/missing.ts'
import crossOrigin from './cors.ts'
import { reduceForwardedProtocol } from './forwarded-protocol.ts'
import { sendRaw } from './server.ts'
import type { SetHeaders } from './security-headers.ts'

export interface HttpDefaultsOptions {
  /** The origins whose pages may read responses, or `*`. If it is empty, no other origin may. */
  origins: readonly string[]
  /** Sets the security headers: the result of `createHeaders`. */
  setHeaders: SetHeaders
  /** Renders what browsers get on a path that does not exist. */
  renderMissing?: RenderMissing
}

/** Does what a host does for itself elsewhere: security headers, CORS, and a response for every path. */
export default fp<HttpDefaultsOptions>(async function httpDefaults (app, { origins, setHeaders, renderMissing }) {
  app.addHook('onRequest', (request, reply, done) => {
    reduceForwardedProtocol(request)
    setHeaders(request, reply)
    const { headers, rawHeaders, httpVersion } = request.raw
    // RFC 9112 3.2 and RFC 9110 10.1.1. Node would respond to such requests without a body, or accept them.
    if (isRepeated('host', rawHeaders)) done(new InvalidInput('host header must not be repeated'))
    else if (headers.host === undefined && httpVersion === '1.1') done(new InvalidInput('host header is required'))
    else if (headers.expect !== undefined &&
      headers.expect.toLowerCase() !== '100-continue') done(new ExpectationFailed())
    else done()
  })
  app.server.on('checkExpectation', (request, response) => { app.server.emit('request', request, response) })
  // Without a listener, Node closes the connection without a response.
  app.server.on('connect', (_, socket) => {
    // A client may disconnect before it has its response. Without a listener, that error would end the process.
    socket.on('error', () => {})
    const { message, code, statusCode } = new MethodNotAllowed('CONNECT')
    const allow = 'Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
    takeOverConnection(socket, () => sendRaw(socket, statusCode!, { error: message, code }, [allow]))
  })
  if (origins.length > 0) await app.register(crossOrigin, { origins })
  await app.register(errors)
  app.setNotFoundHandler((request, reply) => {
    rejectPreflight(request)
    const page = renderMissing?.(request, reply)
    if (page === undefined) throw new NotFound()
    return reply.code(404).send(page)
  })
}, { name: 'usher-http-defaults' })

// `request.headers` only has the first one, because Node drops the others.
function isRepeated (name: string, rawHeaders: readonly string[]): boolean {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index]!
    if (header.length === name.length && header.toLowerCase() === name) count++
  }
  return count > 1
}
