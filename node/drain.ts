import type { ServerResponse } from 'node:http'
import { Server, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import fp from 'fastify-plugin'

// So long a request may be on its way, on a connection that has just been opened or is kept alive.
const ON_ITS_WAY_MS = 500
// A proxy sends a request on a connection that it keeps at any moment, and no POST a second time. It lets go of an idle
// one by itself, see docs/nginx.conf.
const PROXY_IDLE_MS = 2_500
// What is still open then is cut off, such as a slow upload or a response that nobody reads. An orchestrator kills a
// process that takes long to stop, and mail and the database need the rest of the time.
const CONNECTED_MS = 3_000

export interface DrainOptions {
  /** Whether requests come by way of a proxy. */
  proxied: boolean
  /** Milliseconds after which the connections that are still open are cut off. */
  connectedMs?: number
}

/** Node's own way to tell what a connection is answering. */
type Connection = Socket & { _httpMessage?: ServerResponse | null }

/**
 * A stop within moments that fails no request, though connections are kept alive for over a minute. Nobody new is let
 * in, and every answer from now on tells its client to let go. `server.close` would close the idle ones at once, on
 * which a request may be on its way, and wait for those that were opened ahead of any request, as browsers do, and for
 * clients that neither send nor read.
 */
export default fp<DrainOptions>(async function drain (app, { proxied, connectedMs = CONNECTED_MS }) {
  const { server } = app
  const connections = new Set<Connection>()
  const closeIdle = server.closeIdleConnections

  server.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })

  app.addHook('preClose', async () => {
    server.closeIdleConnections = () => {}
    // What has not been accepted when the listener closes is reset: right after a turn that has accepted all.
    await turn()
    Server.prototype.close.call(server)
    // Those that come from now on Fastify marks.
    for (const { _httpMessage: answer } of connections) if (answer && !answer.headersSent) answer.setHeader('connection', 'close')
    setTimeout(() => {
      for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
    }, ON_ITS_WAY_MS).unref()
    setTimeout(() => {
      closeIdle.call(server)
      // Of an answer that is still under way, and has promised to keep the connection.
      Object.assign(server, { keepAliveTimeout: ON_ITS_WAY_MS, keepAliveTimeoutBuffer: 0 })
    }, proxied ? PROXY_IDLE_MS : ON_ITS_WAY_MS).unref()
    setTimeout(() => { for (const socket of connections) socket.destroy() }, connectedMs).unref()
  })
}, { name: 'usher-drain' })
