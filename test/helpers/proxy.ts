import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'

// At its natural end Node waits for ever, busily, for a socket that was reset while it had something to write.
process.once('beforeExit', () => process.exit())

/** A database's address that can fail as networks do. */
export interface Proxy {
  /** The database's URL, by way of the proxy. */
  readonly url: string
  /** How often somebody has connected. */
  readonly dialed: number
  /** Resets every connection. */
  cut (): void
  /** Resets every connection, and refuses new ones until `listen`. */
  refuse (): void
  listen (): Promise<void>
  /** Refuses new connections until `listen`; the others live on. */
  stopListening (): void
  /** Accepts new connections and hangs up at once, until `listen`; resets the others. */
  hangUp (): void
  /** Passes nothing on, of old and of new connections, until `thaw`: both ends believe that the other is there. */
  freeze (): void
  thaw (): void
  /** Passes on what the server sends only after so many milliseconds, from now on. */
  delayReplies (milliseconds: number): void
  /** The same for what clients send. */
  delayRequests (milliseconds: number): void
  /** Passes nothing on any more of the connections that are open now, frozen or not; new ones work. */
  abandon (which?: 'newest'): void
}

/** Opens a TCP proxy in front of a database, closed by the end of the test. */
export async function createProxy (t: Test, databaseUrl: string): Promise<Proxy> {
  const target = new URL(databaseUrl)
  const pairs = new Set<[Socket, Socket]>()
  let [frozen, hangingUp, dialed, port] = [false, false, 0, 0]
  const delays = { replies: 0, requests: 0 }
  let server = await open()
  t.teardown(refuse)

  async function open () {
    const server = createServer(accept).listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
    return server
  }

  function accept (client: Socket): void {
    dialed++
    // Out of the backlog of a server that has closed.
    if (!server.listening) return void client.destroy()
    if (hangingUp) return void client.on('error', () => {}).resume().end()
    const upstream = connect(Number(target.port), target.hostname)
    const pair: [Socket, Socket] = [client, upstream]
    pairs.add(pair)
    join(client, upstream, 'requests')
    join(upstream, client, 'replies')
    if (frozen) for (const socket of pair) socket.pause()

    function join (from: Socket, to: Socket, direction: keyof typeof delays): void {
      let [delayed, sent] = [0, Promise.resolve()]
      from.on('data', (chunk) => {
        const delayMs = delays[direction]
        const due = performance.now() + delayMs
        if (delayMs === 0 && delayed === 0) return void to.write(chunk)
        delayed++
        // In their order, also where the delay changes.
        sent = sent.then(() => delay(Math.max(0, due - performance.now()))).then(() => {
          delayed--
          to.write(chunk)
        })
      })
      // What there is to know of an error, the 'close' after it says.
      from.on('error', () => {})
      from.on('close', () => {
        to.destroy()
        pairs.delete(pair)
      })
    }
  }

  function cut (): void {
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy()
  }

  function stopListening (): void {
    server.close()
  }

  function refuse (): void {
    stopListening()
    cut()
  }

  const all = (action: (socket: Socket) => void) => { for (const pair of pairs) pair.forEach(action) }

  return {
    url: Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(port) }).href,
    get dialed () { return dialed },
    cut,
    refuse,
    stopListening,

    async listen () {
      hangingUp = false
      if (!server.listening) server = await open()
    },

    hangUp () {
      hangingUp = true
      cut()
    },

    freeze () {
      frozen = true
      all((socket) => socket.pause())
    },

    thaw () {
      frozen = false
      all((socket) => socket.resume())
    },

    delayReplies (milliseconds) { delays.replies = milliseconds },
    delayRequests (milliseconds) { delays.requests = milliseconds },

    abandon (which) {
      frozen = false
      for (const pair of which ? [...pairs].slice(-1) : pairs) for (const socket of pair) socket.pause()
    },
  }
}
