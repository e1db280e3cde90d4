import type { IncomingMessage } from 'node:http'
import fp from 'fastify-plugin'
import { hasBody } from './body-deadline.ts'

const LINGER_MS = 2000

/**
 * An answer that leaves before the whole body came, such as a 413: reading goes on for a while, for closing at once
 * would reset the connection, and the client could lose the answer (RFC 9112 9.6).
 */
export default fp(async function lingeringClose (app) {
  app.addHook('onRequest', ({ raw }, reply, done) => {
    // Listening costs: most requests have no body. Injected ones have no connection either.
    if (hasBody(raw)) reply.raw.once('finish', () => lingerOn(raw))
    done()
  })
}, { name: 'usher-lingering-close' })

function lingerOn (request: IncomingMessage): void {
  if (request.complete !== false) return
  request.resume()
  const timer = setTimeout(() => request.destroy(), LINGER_MS)
  request.once('close', () => clearTimeout(timer))
}
