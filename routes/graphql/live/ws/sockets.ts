import { once } from 'node:events'
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest, preValidationHookHandler, RouteOptions } from 'fastify'
import { WebSocketServer, type WebSocket } from 'ws'
import { closeConnection } from '../../../../plugins/connections.ts'
import { setRetryAfter } from '../../../../plugins/errors.ts'
import { sendIsolated } from '../../../../plugins/response-isolation.ts'
import { OriginNotAllowed } from '../../../../schema/errors.ts'
import type { Network } from '../../../../schema/network.ts'
import { clientNetworksOf } from '../../../../plugins/client-info.ts'
import { createAllowedOrigins } from '../../../allowed-origins.ts'
import { RETRY_AFTER_SECONDS } from '../quotas.ts'
import { CloseCode } from './close-codes.ts'
import { GraphqlSocket } from './graphql-socket.ts'
import { protocols } from './protocols.ts'
import type { SocketContext } from './socket-context.ts'
import type { Subscriptions } from '../subscriptions.ts'
import { handleUpgrades } from './upgrades.ts'

const BYTES_A_MESSAGE = 16 * 1024
const FRAGMENTS_A_MESSAGE = 64

/**
 * Adds WebSockets to a path. mercurius would register @fastify/websocket, which handles every upgrade of the whole server, even
 * those of a host's own routes. Usher only handles upgrades of its path, and sends them through the router like any request, so
 * that the host's hooks see them.
 */
export function addSockets (app: FastifyInstance, path: string, subscriptions: Subscriptions): void {
  const upgrades = new WeakMap<IncomingMessage, { connection: Duplex, head: Buffer }>()
  const { prefix, pingSeconds, deadlines } = app.usherOptions
  const origins = createAllowedOrigins(app)
  const options = {
    noServer: true,
    maxPayload: BYTES_A_MESSAGE,
    // A message in very small fragments takes many times its size in memory.
    maxFragments: FRAGMENTS_A_MESSAGE,
    // The socket answers pings itself, with a limit of unread bytes.
    autoPong: false,
    // @types/ws does not know this option. By default, ws waits for 30 seconds.
    closeTimeout: deadlines.socketClose,
    handleProtocols: (offered: Set<string>) => [...protocols.keys()].find((name) => offered.has(name)) ?? false as const,
  }
  const sockets = new WebSocketServer(options)
  const open = new Set<GraphqlSocket>()
  const url = `${prefix}${path}`
  // mercurius does not register @fastify/websocket if this decorator exists.
  app.decorate('websocketServer', sockets as never)

  const release = handleUpgrades(app.server, url, (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    upgrades.set(request, { connection: socket, head })
    // This runs after the other listeners. If one of them, such as a host's @fastify/websocket, sends every upgrade through the
    // router, this request must not be routed again.
    process.nextTick(dispatch, app, request, socket)
  })
  app.addHook('onRoute', (route) => {
    if (route.method === 'GET' && route.url === url) acceptUpgrades(route)
  })
  // Closes sockets that have not answered the last ping.
  const pinging = setInterval(() => { for (const socket of open) socket.checkAlive() }, pingSeconds * 1000).unref()
  app.addHook('preClose', async () => {
    clearInterval(pinging)
    release()
    await closeAll(sockets, deadlines.socketClose)
  })

  // Makes the GET route handle upgrades, even if a plugin of the host has changed the route. Other requests get their response in
  // `preValidation` and do not reach the handler.
  function acceptUpgrades (route: RouteOptions): void {
    const { preValidation } = route
    route.preValidation = function (request, reply, done) {
      if (upgrades.has(request.raw)) done()
      else (preValidation as preValidationHookHandler).call(this, request, reply, done)
    }
    route.handler = function (request, reply) {
      if (!origins.mayConnect(request)) return sendError(reply, new OriginNotAllowed())
      const networks = clientNetworksOf(request)
      try {
        const leave = subscriptions.admit(networks, 'websocket')
        reply.hijack()
        upgrade(request, networks, leave)
      } catch (error) {
        return sendError(reply, error as FastifyError)
      }
    }
  }

  function upgrade (request: FastifyRequest, networks: readonly Network[], leave: () => void): void {
    const { connection, head } = upgrades.get(request.raw)!
    let upgraded = false
    sockets.handleUpgrade(request.raw, connection, head, (socket) => {
      upgraded = true
      socket.once('close', leave)
      accept(socket, { usher: app, request, connection, networks, subscriptions })
    })
    // The handshake was invalid, and ws has already sent a response.
    if (!upgraded) leave()
  }

  function accept (socket: WebSocket, context: SocketContext): void {
    const protocol = protocols.get(socket.protocol)
    if (!protocol) return rejectProtocol(socket, app)
    const accepted = new GraphqlSocket(socket, protocol, context)
    open.add(accepted)
    socket.once('close', () => open.delete(accepted))
  }
}

function rejectProtocol (socket: WebSocket, { log }: FastifyInstance): void {
  // Without a listener, an invalid frame of the closing socket would end the process.
  socket.on('error', (err) => log.debug({ err }, 'a socket has failed'))
  socket.close(CloseCode.SubprotocolNotAcceptable, 'Subprotocol not acceptable')
}

// Sends an error with its status. The error handler of mercurius would respond with status 200.
function sendError (reply: FastifyReply, { message, code, statusCode }: FastifyError): FastifyReply {
  if (statusCode !== 403) setRetryAfter(reply, RETRY_AFTER_SECONDS)
  return sendIsolated.call(reply.code(statusCode!), { error: message, code })
}

function dispatch (app: FastifyInstance, request: IncomingMessage, socket: Duplex): void {
  const response = new ServerResponse(request)
  try {
    response.assignSocket(socket as never)
  } catch {
    // Another listener has already created a response for the connection and routed the request.
    return
  }
  response.on('finish', () => closeConnection(socket))
  app.routing(request, response)
}

// Closes all sockets, and ends those that have not closed in time. A request that is not upgraded yet gets 503 from ws.
async function closeAll (sockets: WebSocketServer, timeoutMs: number): Promise<void> {
  const closed = once(sockets, 'close')
  sockets.close()
  for (const socket of sockets.clients) socket.close(CloseCode.GoingAway, 'The server is going away')
  const deadline = setTimeout(() => { for (const socket of sockets.clients) socket.terminate() }, timeoutMs)
  await closed
  clearTimeout(deadline)
}
