import { Server, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import fp from 'fastify-plugin'
import type { Connection } from '../../plugins/http/raw/connections.ts'

// How long a request may be on its way, on a connection that was just opened or is kept alive.
const ON_ITS_WAY_MS = 500
// A proxy may send a request on a connection that it keeps alive at any moment, and does not repeat a POST. It closes idle
// connections by itself before this time has passed, see docs/nginx.conf.
const PROXY_IDLE_MS = 2_500
// Connections that are still open then are cut off, such as a slow upload or a response that the client does not read. An
// orchestrator kills a process that takes long to stop, and mail and the database need the rest of the time.
const CONNECTED_MS = 3_000
// A worker that is replaced has more time for both, because another one already serves.
const REPLACED_IDLE_MS = 5_000
const REPLACED_CONNECTED_MS = 30_000

export interface DrainOptions {
  /** Whether requests come by way of a proxy. */
  proxied: boolean
  /** Milliseconds after which the connections that are still open are cut off. */
  connectedMs?: number
  /** Returns whether the app stops because another one serves in its place. Then it leaves clients more time. */
  isReplaced?: () => boolean
}

/**
 * Stops the server within seconds without failing a request, although connections are kept alive for more than a minute. No
 * new connections are accepted, and every response from now on asks its client to close the connection. `server.close` would
 * close idle connections at once, on which a request may be on its way. It would also wait for connections that were opened
 * before there was a request, as browsers do, and for clients that neither send nor read.
 */
export default fp<DrainOptions>(async function drain (app, { proxied, connectedMs = CONNECTED_MS, isReplaced = () => false }) {
  const { server } = app
  const connections = new Set<Socket & Connection>()
  const closeIdle = server.closeIdleConnections

  server.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })

  app.addHook('preClose', async () => {
    const patient = isReplaced()
    const onItsWayMs = patient ? REPLACED_IDLE_MS : ON_ITS_WAY_MS
    const idleMs = proxied && !patient ? PROXY_IDLE_MS : onItsWayMs
    server.closeIdleConnections = () => {}
    // When the listener closes, connections that were not accepted yet are reset. It closes right after a turn of the event
    // loop that has accepted all of them.
    await turn()
    Server.prototype.close.call(server)
    // Fastify sets this header on the responses to requests that arrive from now on.
    for (const { _httpMessage: response } of connections) {
      if (response && !response.headersSent) response.setHeader('connection', 'close')
    }
    setTimeout(() => {
      for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
    }, onItsWayMs).unref()
    setTimeout(() => {
      closeIdle.call(server)
      // This applies to responses in progress whose headers have promised to keep the connection alive.
      Object.assign(server, { keepAliveTimeout: ON_ITS_WAY_MS, keepAliveTimeoutBuffer: 0 })
    }, idleMs).unref()
    setTimeout(() => { for (const socket of connections) socket.destroy() }, patient ? REPLACED_CONNECTED_MS : connectedMs).unref()
  })
}, { name: 'usher-drain' })
