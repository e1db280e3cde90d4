import type { IncomingMessage } from 'node:http'
import fp from 'fastify-plugin'
import { hasBody } from './body-deadline.ts'
import { LINGER_MS } from './connections.ts'

/**
 * Continues to read for up to two seconds if a response, such as a 413, is sent before the whole body has arrived.
 * Closing at once would reset the connection, and the client could lose the response (RFC 9112 9.6).
 */
export default fp(async function lingeringClose (app) {
  app.addHook('onRequest', ({ raw }, reply, done) => {
    // A listener costs throughput, and most requests have no body.
    if (hasBody(raw)) reply.raw.once('finish', () => lingerOn(raw))
    done()
  })
}, { name: 'usher-lingering-close' })

function lingerOn (request: IncomingMessage): void {
  // A request of `app.inject` has no connection, and `complete` is undefined.
  if (request.complete !== false) return
  request.resume()
  const timer = setTimeout(() => request.destroy(), LINGER_MS)
  request.once('close', () => clearTimeout(timer))
}
