import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type {
  FastifyError, FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions, preValidationHookHandler,
  RouteOptions,
} from 'fastify'
import { WebSocketServer, type WebSocket } from 'ws'
import { closeConnection } from '../../../../plugins/http/raw/connections.ts'
import { setRetryAfter } from '../../../../plugins/http/errors.ts'
import { sendIsolated } from '../../../../plugins/http/response-isolation.ts'
import { OriginNotAllowed } from '../../../../schema/http/errors.ts'
import type { Network } from '../../../../schema/http/network.ts'
import { clientNetworksOf } from '../../../../plugins/http/client-info.ts'
import { createAllowedOrigins } from '../../../http/allowed-origins.ts'
import { RETRY_AFTER_SECONDS } from '../../../../plugins/streams/event-streams.ts'
import { CloseCode } from './close-codes.ts'
import { GraphqlSocket } from './graphql-socket.ts'
import { protocols } from './protocols.ts'
import type { SocketContext } from './socket-context.ts'
import type { Subscriptions } from '../subscriptions.ts'
import { handleUpgrades } from './upgrades.ts'

// An `import` would also load what `node:http` loads on first use: undici, which takes more than a megabyte.
const http = process.getBuiltinModule('node:http')

const MAX_BYTES_PER_MESSAGE = 16 * 1024
const MAX_FRAGMENTS_PER_MESSAGE = 64

/**
 * Adds WebSockets to a path. mercurius would register @fastify/websocket, which handles every upgrade of the whole
 * server, even those of a host's own routes. Usher only handles upgrades of its path, and sends them through the router
 * like any request, so that the host's hooks see them.
 */
export function addSockets (app: FastifyInstance, path: string, subscriptions: Subscriptions): void {
  // By the response, because a hook of the host may replace `request.raw`.
  const upgrades = new WeakMap<ServerResponse, { request: IncomingMessage, connection: Duplex, head: Buffer }>()
  const { prefix, pingSeconds, deadlines } = app.usherOptions
  const origins = createAllowedOrigins(app)
  const options = {
    noServer: true,
    maxPayload: MAX_BYTES_PER_MESSAGE,
    // A message in very small fragments takes many times its size in memory.
    maxFragments: MAX_FRAGMENTS_PER_MESSAGE,
    // The socket answers pings itself, with a limit of unread bytes.
    autoPong: false,
    // @types/ws does not know this option. By default, ws waits for 30 seconds.
    closeTimeout: deadlines.socketClose,
    handleProtocols: (offered: Set<string>) =>
      [...protocols.keys()].find((name) => offered.has(name)) ?? false as const,
  }
  const sockets = new WebSocketServer(options)
  const open = new Set<GraphqlSocket>()
  const url = `${prefix}${path}`
  // mercurius does not register @fastify/websocket if this decorator exists.
  app.decorate('websocketServer', sockets as never)

  const { rewrite, pathOf } = readRouting(app)
  const release = handleUpgrades(app.server, pathOf(url), dispatch, (request) => pathOf(rewrite(request)))
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

  // Makes the GET route handle upgrades, even if a plugin of the host has changed the route. Other requests get their
  // response in `preValidation` and do not reach the handler.
  function acceptUpgrades (route: RouteOptions): void {
    const { preValidation } = route
    route.preValidation = function (request, reply, done) {
      if (upgrades.has(reply.raw)) done()
      else (preValidation as preValidationHookHandler).call(this, request, reply, done)
    }
    route.handler = function (request, reply) {
      if (!origins.mayConnect(request)) return sendError(reply, new OriginNotAllowed())
      const networks = clientNetworksOf(request)
      try {
        const leave = app.usherStreams.connections.admit(networks, 'websocket')
        reply.hijack()
        upgrade(request, reply, networks, leave)
      } catch (error) {
        return sendError(reply, error as FastifyError)
      }
    }
  }

  // Sends the request through the router.
  function dispatch (request: IncomingMessage, connection: Duplex, head: Buffer): void {
    connection.on('error', () => connection.destroy())
    const response = new http.ServerResponse(request)
    upgrades.set(response, { request, connection, head })
    response.assignSocket(connection as never)
    response.on('finish', () => closeConnection(connection))
    app.routing(request, response)
  }

  function upgrade (
    request: FastifyRequest, { raw }: FastifyReply, networks: readonly Network[], leave: () => void
  ): void {
    const { request: received, connection, head } = upgrades.get(raw)!
    let upgraded = false
    sockets.handleUpgrade(received, connection, head, (socket) => {
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

// Returns functions that rewrite the URL of a request, and read its path, as the router does, with the host's
// options. Fastify tells them nowhere else.
function readRouting (app: FastifyInstance) {
  const { routerOptions, ...options } = findOptions(app) ?? {}
  const { rewriteUrl } = options
  const { caseSensitive, ignoreDuplicateSlashes, ignoreTrailingSlash } = { ...options, ...routerOptions }

  function rewrite (request: IncomingMessage): string {
    const url = request.url!
    try {
      const rewritten: unknown = rewriteUrl?.call(app, request as never)
      return typeof rewritten === 'string' ? rewritten : url
    } catch {
      // The router fails in the same way, where it is reported.
      return url
    } finally {
      // The router rewrites it again.
      request.url = url
    }
  }

  function pathOf (url: string): string {
    let [path = ''] = url.split('?', 1)
    if (ignoreDuplicateSlashes) path = path.replaceAll(/\/{2,}/g, '/')
    if (ignoreTrailingSlash) path = path.replace(/\/$/, '')
    return caseSensitive === false ? path.toLowerCase() : path
  }
  return { rewrite, pathOf }
}

function findOptions (scope: object | null): FastifyServerOptions | undefined {
  if (scope === null) return undefined
  const key = Object.getOwnPropertySymbols(scope).find(({ description }) => description === 'fastify.options')
  return key ? (scope as Record<symbol, FastifyServerOptions>)[key] : findOptions(Object.getPrototypeOf(scope))
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
