import type { IncomingMessage, Server } from 'node:http'
import { Server as TlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { takeOverConnection } from '../../../../plugins/connections.ts'

export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

// The handlers of each server by path. All mounts on a server share one listener.
const pathsOf = new WeakMap<Server, Map<string, UpgradeHandler>>()

/** Handles the WebSocket upgrades of a server at a path. Returns a function that stops this. */
export function handleUpgrades (server: Server, path: string, handler: UpgradeHandler): () => void {
  const paths = pathsOf.get(server) ?? listen(server)
  paths.set(path, handler)
  return () => paths.delete(path)
}

function listen (server: Server): Map<string, UpgradeHandler> {
  const paths = new Map<string, UpgradeHandler>()
  pathsOf.set(server, paths)
  // This listener runs before those of a host, which may send every upgrade through the router.
  server.prependListener('upgrade', (request, socket, head) => {
    const handler = wantsSocket(request) ? paths.get(request.url!.split('?', 1)[0]!) : undefined
    if (handler) takeOverConnection(socket, () => handler(request, socket, head))
    else if (server.listenerCount('upgrade') === 1) takeOverConnection(socket, () => inNextTurn(socket, () => ignoreUpgrade(server, request, socket, head)))
  })
  return paths
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
 * Handles an upgrade that no listener wants like a plain request. Node does that if there is no listener. With Usher's listener
 * the request would wait forever, so it is passed to the server again without its `Upgrade` header.
 */
function ignoreUpgrade (server: Server, { method, url, httpVersion, rawHeaders }: IncomingMessage, socket: Duplex, head: Buffer): void {
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

// Listeners of the server's connections, such as those of a host, add listeners to the same connection again at each upgrade that
// its client requests. Node removes its own. The others are removed here, so that a client cannot make them pile up.
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
