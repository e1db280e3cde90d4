import { ServerResponse, type IncomingMessage } from 'node:http'
import { Server as TlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyRequest, preValidationHookHandler, RouteOptions } from 'fastify'
import { WebSocketServer } from 'ws'
import { GuardedSocket, PROTOCOLS } from './guarded-socket.ts'

const MESSAGE_OCTETS = 16 * 1024
const CLOSING_MS = 1000

type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

// Usher's own listeners, of all mounts in this process.
const listeners = new WeakSet<UpgradeListener>()
const passedOn = new WeakSet<IncomingMessage>()

/**
 * The socket's way in. mercurius would register @fastify/websocket, which answers every upgrade of the whole
 * server, the host's included. Usher takes only those of its own path, and sends them through the router like
 * any request, so that the host's hooks see them.
 */
export function addSockets (app: FastifyInstance, path: string): void {
  const upgrades = new WeakMap<IncomingMessage, { socket: Duplex, head: Buffer }>()
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MESSAGE_OCTETS,
    WebSocket: GuardedSocket,
    handleProtocols: (offered) => PROTOCOLS.find((protocol) => offered.has(protocol)) ?? false,
  })
  const url = `${app.usherOptions.prefix}${path}`
  // That it is there keeps mercurius from registering @fastify/websocket.
  app.decorate('websocketServer', sockets as unknown)

  listeners.add(onUpgrade)
  app.server.prependListener('upgrade', onUpgrade)
  app.addHook('onRoute', (route) => {
    if (route.method === 'GET' && route.url === url) takeOver(route)
  })
  app.addHook('preClose', async () => {
    app.server.removeListener('upgrade', onUpgrade)
    await closeAll(sockets)
  })

  function onUpgrade (request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (request.url!.split('?', 1)[0] !== url || request.headers.upgrade!.toLowerCase() !== 'websocket') return passOn(app, request, socket, head)
    socket.on('error', () => socket.destroy())
    upgrades.set(request, { socket, head })
    // After the other listeners: a host's @fastify/websocket sends every upgrade through the router, and once is enough.
    process.nextTick(dispatch, app, request, socket)
  }

  // The GET route serves the socket where the request is an upgrade, whatever a host's plugin made of the route.
  function takeOver (route: RouteOptions): void {
    const { handler, preValidation } = route
    const { wsHandler } = route as { wsHandler?: (socket: GuardedSocket, request: FastifyRequest) => void }
    route.preValidation = async function (...args) {
      if (!upgrades.has(args[0].raw)) return (preValidation as preValidationHookHandler).apply(this, args)
    }
    route.handler = function (request, reply) {
      const upgrade = upgrades.get(request.raw)
      if (!upgrade) return handler.call(this, request, reply)
      reply.hijack()
      sockets.handleUpgrade(request.raw, upgrade.socket, upgrade.head, (socket) => {
        socket.guard(app.graphql.schema)
        wsHandler!(socket, request)
      })
    }
  }
}

function dispatch (app: FastifyInstance, request: IncomingMessage, socket: Duplex): void {
  const response = new ServerResponse(request)
  try {
    response.assignSocket(socket as never)
  } catch (error) {
    // Another listener has sent it through the router.
    if ((error as { code?: string }).code === 'ERR_HTTP_SOCKET_ASSIGNED') return
    throw error
  }
  response.on('finish', () => socket.end())
  app.routing(request, response)
}

/**
 * An upgrade that nobody wants. Without a listener Node answers it as the plain request that it also is; with
 * ours it would wait for ever. So it is put back into the server, without its wish to upgrade.
 */
function passOn (app: FastifyInstance, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const others = app.server.listeners('upgrade').filter((listener) => !listeners.has(listener as UpgradeListener))
  if (others.length > 0 || passedOn.has(request)) return
  passedOn.add(request)
  const { method, url, httpVersion, rawHeaders } = request
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (!/^(upgrade|connection|http2-settings)$/i.test(rawHeaders[index]!)) lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  app.server.emit(app.server instanceof TlsServer ? 'secureConnection' : 'connection', socket)
}

async function closeAll (sockets: WebSocketServer): Promise<void> {
  const closed = [...sockets.clients].map((socket) => new Promise((resolve) => { socket.once('close', resolve) }))
  for (const socket of sockets.clients) socket.close(1001, 'The server is going away')
  const deadline = setTimeout(() => { for (const socket of sockets.clients) socket.terminate() }, CLOSING_MS)
  await Promise.all(closed)
  clearTimeout(deadline)
}

/** What a socket's operations know of who asks: the token of `connection_init`, checked now and at each of them. */
export async function actorOfSocket (app: FastifyInstance, payload: unknown) {
  const { authorization, Authorization = authorization, headers } = (payload ?? {}) as Record<string, unknown>
  const token = Authorization ?? (headers as Record<string, unknown> | undefined)?.authorization
  const actor = async () => token == null ? null : app.usherAuth.identify(String(token))
  await actor()
  return { actor }
}
