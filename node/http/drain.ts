import type { Socket } from 'node:net'
import fp from 'fastify-plugin'
import { STOP_DEADLINES, type StopDeadlines } from '../process/deadlines.ts'
import type { Connection } from '../../plugins/http/raw/connections.ts'
import type { Listeners } from './listeners.ts'

export interface DrainOptions {
  listeners: Listeners
  /** Whether requests come by way of a proxy. */
  proxied: boolean
  /** Returns whether the app stops because another one serves in its place. Then it leaves clients more time. */
  isReplaced?: () => boolean
  deadlines?: StopDeadlines
}

/**
 * Stops the server within seconds without failing a request, although connections are kept alive for more than a
 * minute. No new connections are accepted, and every response from now on asks its client to close the connection.
 * `server.close` would close idle connections at once, on which a request may be on its way. It would also wait for
 * connections that were opened before there was a request, as browsers do, and for clients that neither send nor read.
 */
export default fp<DrainOptions>(async function drain (
  app, { listeners, proxied, isReplaced = () => false, deadlines = STOP_DEADLINES }
) {
  const { server } = app
  const { onItsWay, proxyIdle, connected, replacedIdle, replacedConnected } = deadlines
  const connections = new Set<Socket & Connection>()
  const [closeIdle, close] = [server.closeIdleConnections, server.close]
  server.close = (done) => close.call(server, (error) => { void listeners.ended().then(() => done?.(error)) })

  server.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })

  app.addHook('preClose', async () => {
    const patient = isReplaced()
    const onItsWayMs = patient ? replacedIdle : onItsWay
    const idleMs = proxied && !patient ? proxyIdle : onItsWayMs
    server.closeIdleConnections = () => {}
    await listeners.close()
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
      Object.assign(server, { keepAliveTimeout: onItsWay, keepAliveTimeoutBuffer: 0 })
    }, idleMs).unref()
    setTimeout(() => {
      for (const socket of connections) socket.destroy()
    }, patient ? replacedConnected : connected).unref()
  })
}, { name: 'usher-drain' })
