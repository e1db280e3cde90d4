import type { IncomingMessage, Server } from 'node:http'
import { Server as TlsServer } from 'node:https'
import type { Duplex } from 'node:stream'

export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

// What each server's paths are taken by; of all mounts on it, which share one listener.
const pathsOf = new WeakMap<Server, Map<string, UpgradeHandler>>()

/** Takes a server's upgrades to a WebSocket at a path, until the function that it returns is called. */
export function handleUpgrades (server: Server, path: string, take: UpgradeHandler): () => void {
  const paths = pathsOf.get(server) ?? listen(server)
  paths.set(path, take)
  return () => paths.delete(path)
}

function listen (server: Server): Map<string, UpgradeHandler> {
  const paths = new Map<string, UpgradeHandler>()
  pathsOf.set(server, paths)
  // Before those of a host, which may send every upgrade through the router.
  server.prependListener('upgrade', (request, socket, head) => {
    const take = wantsSocket(request) ? paths.get(request.url!.split('?', 1)[0]!) : undefined
    if (take) take(request, socket, head)
    else if (server.listenerCount('upgrade') === 1) passOn(server, request, socket, head)
  })
  return paths
}

function wantsSocket ({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade!.toLowerCase() === 'websocket'
}

/**
 * An upgrade that nobody wants. Without a listener Node answers it as the plain request that it also is; with
 * ours it would wait for ever. So it is put back into the server, without its wish to upgrade.
 */
function passOn (server: Server, { method, url, httpVersion, rawHeaders }: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]!.toLowerCase() !== 'upgrade') lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  reconnect(server, socket)
}

type Listener = (...values: unknown[]) => void

// The listeners that a socket got when it was last put back into its server.
const addedTo = new WeakMap<Duplex, [event: string | symbol, listener: Listener][]>()

// Whoever listens for connections adds listeners to the same socket again, each time that its client asks for an upgrade.
// Node removes its own; the others are removed here, so that a client cannot make them pile up.
function reconnect (server: Server, socket: Duplex): void {
  for (const [event, listener] of addedTo.get(socket) ?? []) socket.removeListener(event, listener)
  const before = new Set(listenersOf(socket).map(([, listener]) => listener))
  server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', socket)
  addedTo.set(socket, listenersOf(socket).filter(([, listener]) => !before.has(listener)))
}

function listenersOf (socket: Duplex): [event: string | symbol, listener: Listener][] {
  return socket.eventNames().flatMap((event) => socket.rawListeners(event).map((listener): [string | symbol, Listener] => [event, listener as Listener]))
}
