import fp from 'fastify-plugin'

const LINGER_MS = 2000

/**
 * An answer that leaves before the whole body came, such as a 413: reading goes on for a while, for closing at once
 * would reset the connection, and the client could lose the answer (RFC 9112 9.6).
 */
export default fp(async function linger (app) {
  app.addHook('onResponse', ({ raw }, _, done) => {
    // Not so of injected requests, which have no connection.
    if (raw.complete === false) {
      raw.resume()
      const timer = setTimeout(() => raw.destroy(), LINGER_MS)
      raw.once('close', () => clearTimeout(timer))
    }
    done()
  })
}, { name: 'usher-linger' })
