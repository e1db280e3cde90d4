import { once } from 'node:events'
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest, preValidationHookHandler, RouteOptions } from 'fastify'
import { WebSocketServer } from 'ws'
import { OriginNotAllowed } from '../../../../schema/errors.ts'
import { networkOf } from '../../../../schema/network.ts'
import { createAllowedOrigins } from '../../../allowed-origins.ts'
import { GuardedSocket } from './guarded-socket.ts'
import { PROTOCOLS } from './messages.ts'
import type { Subscriptions } from '../subscriptions.ts'
import { handleUpgrades } from './upgrades.ts'

const CLOSING_MS = 1000
const RETRY_AFTER_SECONDS = '5'
const OCTETS_A_MESSAGE = 16 * 1024
const FRAGMENTS_A_MESSAGE = 64

/**
 * The socket's way in. mercurius would register @fastify/websocket, which answers every upgrade of the whole
 * server, the host's included. Usher takes only those of its own path, and sends them through the router like
 * any request, so that the host's hooks see them.
 */
export function addSockets (app: FastifyInstance, path: string, subscriptions: Subscriptions): void {
  const upgrades = new WeakMap<IncomingMessage, { connection: Duplex, head: Buffer }>()
  const { prefix, pingSeconds } = app.usherOptions
  const origins = createAllowedOrigins(app)
  const options = {
    noServer: true,
    maxPayload: OCTETS_A_MESSAGE,
    // A message in very small pieces takes many times its size.
    maxFragments: FRAGMENTS_A_MESSAGE,
    // The socket answers by itself, as far as its client reads.
    autoPong: false,
    WebSocket: GuardedSocket,
    // Unknown to @types/ws; ws waits for 30 seconds by default.
    closeTimeout: CLOSING_MS,
    handleProtocols: (offered: Set<string>) => PROTOCOLS.find((protocol) => offered.has(protocol)) ?? false as const,
  }
  const sockets = new WebSocketServer(options)
  const url = `${prefix}${path}`
  // That it is there keeps mercurius from registering @fastify/websocket.
  app.decorate('websocketServer', sockets as never)

  const release = handleUpgrades(app.server, url, (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    upgrades.set(request, { connection: socket, head })
    // After the other listeners: a host's @fastify/websocket sends every upgrade through the router, and once is enough.
    process.nextTick(dispatch, app, request, socket)
  })
  app.addHook('onRoute', (route) => {
    if (route.method === 'GET' && route.url === url) takeOver(route)
  })
  // Whoever has not answered the last one is gone.
  const pinging = setInterval(() => { for (const socket of sockets.clients) socket.check() }, pingSeconds * 1000).unref()
  app.addHook('preClose', async () => {
    clearInterval(pinging)
    release()
    await closeAll(sockets)
  })

  // The GET route serves the socket, whatever a host's plugin made of the route. What is no upgrade has its answer
  // by then.
  function takeOver (route: RouteOptions): void {
    const { preValidation } = route
    route.preValidation = function (request, reply, done) {
      if (upgrades.has(request.raw)) done()
      else (preValidation as preValidationHookHandler).call(this, request, reply, done)
    }
    route.handler = function (request, reply) {
      if (!origins.mayConnect(request)) return refuse(reply, new OriginNotAllowed())
      const network = networkOf(request.ip)
      try {
        const leave = subscriptions.admit(network)
        reply.hijack()
        upgrade(request, network, leave)
      } catch (error) {
        return refuse(reply, error as FastifyError)
      }
    }
  }

  function upgrade (request: FastifyRequest, network: string, leave: () => void): void {
    const { connection, head } = upgrades.get(request.raw)!
    let upgraded = false
    sockets.handleUpgrade(request.raw, connection, head, (socket) => {
      upgraded = true
      socket.once('close', leave)
      // Before anything else: what the client has sent along with its request is read next.
      socket.guard({ usher: app, request, connection, network, subscriptions })
      if (socket.protocol === '') socket.close(4406, 'Subprotocol not acceptable')
    })
    // A handshake that is wrong has been answered.
    if (!upgraded) leave()
  }
}

// mercurius would answer in GraphQL's way, with status 200.
function refuse (reply: FastifyReply, { message, code, statusCode }: FastifyError): FastifyReply {
  if (statusCode !== 403) reply.header('retry-after', RETRY_AFTER_SECONDS)
  return reply.code(statusCode!).send({ error: message, code })
}

function dispatch (app: FastifyInstance, request: IncomingMessage, socket: Duplex): void {
  const response = new ServerResponse(request)
  try {
    response.assignSocket(socket as never)
  } catch {
    // Another listener has given it a response, and sent it through the router.
    return
  }
  response.on('finish', () => socket.end())
  app.routing(request, response)
}

// An upgrade that is still on its way gets 503.
async function closeAll (sockets: WebSocketServer): Promise<void> {
  const closed = once(sockets, 'close')
  sockets.close()
  for (const socket of sockets.clients) socket.close(1001, 'The server is going away')
  const deadline = setTimeout(() => { for (const socket of sockets.clients) socket.terminate() }, CLOSING_MS)
  await closed
  clearTimeout(deadline)
}
