import type { Socket } from 'node:net'
import fp from 'fastify-plugin'

// So long a request may be on its way on a connection that has just been opened.
const FIRST_REQUEST_MS = 500

/**
 * A stop within moments, though connections are kept alive for over a minute: `server.close` waits for those
 * that were opened ahead of any request, as browsers do, and for those whose answer was on its way.
 */
export default fp(async function drain (app) {
  const { server } = app
  const connections = new Set<Socket>()

  server.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })

  app.addHook('preClose', async () => {
    // Read by the server when an answer has left: its connection is then closed rather than kept.
    Object.assign(server, { keepAliveTimeout: 1, keepAliveTimeoutBuffer: 0 })
    setTimeout(() => {
      for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
    }, FIRST_REQUEST_MS)
  })
}, { name: 'usher-drain' })
