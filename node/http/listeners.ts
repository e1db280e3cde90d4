import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { Server, type AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { createSampler } from '../../plugins/support/sampler.ts'
import { STOP_DEADLINES, type StopDeadlines } from '../process/deadlines.ts'

// How many connections are accepted in a turn of the event loop.
const LISTENERS = 16

export interface Listeners {
  /**
   * Makes an app listen on a port, or on any free one if it is 0. Resolves with its URL. Throws what `server.listen`
   * emits.
   */
  listen (app: FastifyInstance, host: string, port: number): Promise<string>
  /** Accepts the pending connections, and then no others. */
  close (): Promise<void>
  /** Resolves when the connections that the server does not know as its own have closed. */
  ended (): Promise<void>
}

/**
 * Creates what accepts the connections of a server. In each turn of the event loop, libuv accepts one connection per
 * socket that listens (libuv/libuv#3696, nodejs/node#57364). Under load, a turn takes ten milliseconds and more: with
 * one socket, a node would accept a hundred connections a second, and a client that opens thousands would shut out all
 * others. So more sockets listen on the same port, among which Linux distributes the connections. Other systems do not.
 * @param shares whether several sockets listen. A worker has one: the primary, whose turns are short, accepts for it
 */
export function createListeners (
  server: HttpServer,
  { shares = process.platform === 'linux', deadlines: { pending } = STOP_DEADLINES }:
  { shares?: boolean | undefined, deadlines?: StopDeadlines } = {}
): Listeners {
  const others: Server[] = []
  const ends: Promise<void>[] = []
  let accepted = 0
  server.on('connection', () => { accepted++ })

  async function listenBeside (options: object): Promise<void> {
    // The defaults of `http.Server`.
    const other = new Server({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket))
    other.listen(options)
    await once(other, 'listening')
    others.push(other)
    ends.push(new Promise<void>((resolve) => other.once('close', resolve)))
  }

  // When the system has no more files, for example. Unless somebody listens, that would end the process.
  function reportErrors (log: FastifyBaseLogger): void {
    const isNew = createSampler({ keys: 1 })
    for (const listener of [server, ...others]) {
      listener.on('error', (err) => { if (isNew('')) log.error({ err }, 'A connection could not be accepted') })
    }
  }

  return {
    async listen (app, host, port) {
      // Nodes that share a port by mistake would each get some of the connections.
      if (shares) await requireFree(host, port)
      const options = { host, port, ...shares && { reusePort: true } }
      const url = await app.listen(options)
      const { port: bound } = server.address() as AddressInfo
      const more = shares ? LISTENERS - 1 : 0
      while (others.length < more) await listenBeside({ ...options, port: bound })
      reportErrors(app.log)
      return url
    },

    async close () {
      // The system resets connections that are pending when a listener closes. There may be new ones all the time.
      const until = performance.now() + pending
      for (let before = -1; before !== accepted && performance.now() < until;) {
        before = accepted
        // The first one may end before the system is asked for connections.
        await turn()
        await turn()
      }
      for (const listener of [server, ...others]) Server.prototype.close.call(listener)
    },

    async ended () {
      await Promise.all(ends)
    },
  }
}

/** Throws what `server.listen` emits if a port cannot be used. */
export async function requireFree (host: string, port: number): Promise<void> {
  // Clients may already connect.
  const probe = new Server((socket) => socket.destroy()).listen({ host, port })
  await once(probe, 'listening')
  probe.close()
  await once(probe, 'close')
}
