import type { IncomingMessage, Server } from 'node:http'
import { Server as TlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { takeOverConnection } from '../../../../plugins/http/raw/connections.ts'

export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

interface UpgradeRoute {
  path: string
  handler: UpgradeHandler
  pathOf: (request: IncomingMessage) => string
}

// The routes of each server. All mounts on a server share one listener.
const routesOf = new WeakMap<Server, Set<UpgradeRoute>>()

/**
 * Handles the WebSocket upgrades of a server at a path. Listeners of the host do not see them: many, such as those of
 * ws and NestJS, reject every upgrade that is not theirs. Returns a function that stops this.
 * @param pathOf returns the path of a request as the router sees it
 */
export function handleUpgrades (
  server: Server, path: string, handler: UpgradeHandler,
  pathOf: UpgradeRoute['pathOf'] = ({ url }) => url!.split('?', 1)[0]!
): () => void {
  const routes = routesOf.get(server) ?? listen(server)
  const route = { path, handler, pathOf }
  routes.add(route)
  return () => routes.delete(route)
}

function listen (server: Server): Set<UpgradeRoute> {
  const routes = new Set<UpgradeRoute>()
  routesOf.set(server, routes)
  const { emit } = server
  // A listener could not keep an event from the others.
  server.emit = function (this: Server, event: string, ...values: unknown[]): boolean {
    if (event === 'upgrade') {
      const [request, socket, head] = values as Parameters<UpgradeHandler>
      const isWanted = ({ path, pathOf }: UpgradeRoute) => pathOf(request) === path
      const route = wantsSocket(request) ? [...routes].find(isWanted) : undefined
      if (route) {
        takeOverConnection(socket, () => route.handler(request, socket, head))
        return true
      }
    }
    return Reflect.apply(emit, this, [event, ...values])
  }
  // Without a listener, Node would not emit the event.
  server.on('upgrade', (request, socket, head) => {
    if (server.listenerCount('upgrade') > 1) return
    takeOverConnection(socket, () => inNextTurn(socket, () => ignoreUpgrade(server, request, socket, head)))
  })
  return routes
}

// A client may send hundreds of upgrades in one packet, which Node would handle in one turn of the event loop.
function inNextTurn (socket: Duplex, proceed: () => void): void {
  const close = () => socket.destroy()
  socket.on('error', close)
  setImmediate(() => {
    socket.off('error', close)
    if (!socket.destroyed) proceed()
  })
}

function wantsSocket ({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade!.toLowerCase() === 'websocket'
}

/**
 * Handles an upgrade that no listener wants like a plain request. Node does that if there is no listener. With Usher's
 * listener the request would wait forever, so it is passed to the server again without its `Upgrade` header.
 */
function ignoreUpgrade (
  server: Server, { method, url, httpVersion, rawHeaders }: IncomingMessage, socket: Duplex, head: Buffer
): void {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]!.toLowerCase() !== 'upgrade') lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  reconnect(server, socket)
}

type Listener = (...values: unknown[]) => void

// The listeners that were added to a connection when it was last passed to its server again.
const addedTo = new WeakMap<Duplex, [event: string | symbol, listener: Listener][]>()

// Listeners of the server's connections, such as those of a host, add listeners to the same connection again at each
// upgrade that its client requests. Node removes its own. The others are removed here, so that a client cannot make
// them pile up.
function reconnect (server: Server, socket: Duplex): void {
  for (const [event, listener] of addedTo.get(socket) ?? []) socket.removeListener(event, listener)
  const before = new Set(listenersOf(socket).map(([, listener]) => listener))
  server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', socket)
  addedTo.set(socket, listenersOf(socket).filter(([, listener]) => !before.has(listener)))
}

function listenersOf (socket: Duplex): [event: string | symbol, listener: Listener][] {
  return socket.eventNames().flatMap((event) =>
    socket.rawListeners(event).map((listener): [string | symbol, Listener] => [event, listener as Listener]))
}
