import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { HEARTBEAT } from '../../db/driver/notification-connection.ts'

// When the event loop is otherwise empty, Node.js waits forever, at full CPU, for a socket that was reset while it had
// data to write. The process must therefore exit explicitly.
process.once('beforeExit', () => process.exit())

const isHeartbeat = (chunk: Buffer): boolean => chunk.subarray(HEADER).toString('latin1') === `${HEARTBEAT}\0`

// The type and the length of a message.
const HEADER = 5

/** A proxy in front of a database that can simulate network failures. */
export interface Proxy {
  /** The database's URL through the proxy. */
  readonly url: string
  /** How many connections were opened. */
  readonly dialed: number
  /** How many messages clients have sent. One that waits for each answer sends one for each round trip. */
  readonly requests: number
  /**
   * How many round trips have followed one another: what was sent at the same time, on any connections, is one, and
   * so is the opening of connections. Heartbeats do not count, because nothing waits for them.
   */
  readonly rounds: number
  /** Resets every connection. */
  cut (): void
  /** Resets every connection and rejects new ones until `listen` is called. */
  refuse (): void
  listen (): Promise<void>
  /** Rejects new connections until `listen` is called. Open connections keep working. */
  stopListening (): void
  /** Accepts new connections and closes them at once until `listen` is called. Resets open connections. */
  hangUp (): void
  /**
   * Forwards nothing on open and new connections until `thaw` is called. Both ends believe that the other one is there.
   */
  freeze (): void
  /** Freezes when the given number of round trips from now on has ended. The last reply is delivered. */
  freezeAfter (rounds: number): void
  thaw (): void
  /** Delays what the server sends by this many milliseconds from now on. */
  delayReplies (milliseconds: number): void
  /** Delays what the clients send by this many milliseconds from now on. */
  delayRequests (milliseconds: number): void
  /** Never forwards anything again on the connections that are open now, frozen or not. New connections work. */
  abandon (which?: 'newest'): void
}

/** Opens a TCP proxy in front of a database. It is closed when the test ends. */
export async function createProxy (t: Test, databaseUrl: string): Promise<Proxy> {
  const target = new URL(databaseUrl)
  const pairs = new Set<[Socket, Socket]>()
  let [frozen, hangingUp, dialed, port] = [false, false, 0, 0]
  const delays = { replies: 0, requests: 0 }
  let [requests, rounds, lastRound] = [0, 0, Infinity]
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
    // The connection was still in the backlog of a server that has been closed.
    if (!server.listening) return void client.destroy()
    if (hangingUp) return void client.on('error', () => {}).resume().end()
    const upstream = connect(Number(target.port), target.hostname)
    const pair: [Socket, Socket] = [client, upstream]
    pairs.add(pair)
    // Opening the connection is the first.
    let round = rounds + 1
    join(client, upstream, 'requests')
    join(upstream, client, 'replies')
    if (frozen) for (const socket of pair) socket.pause()

    function deliver (to: Socket, chunk: Buffer): void {
      if (to === client) rounds = Math.max(rounds, round)
      to.write(chunk)
      if (rounds >= lastRound) freeze()
    }

    function join (from: Socket, to: Socket, direction: keyof typeof delays): void {
      let [delayed, sent] = [0, Promise.resolve()]
      from.on('data', (chunk) => {
        if (direction === 'requests') {
          requests++
          if (!isHeartbeat(chunk)) round = Math.max(round, rounds) + 1
        }
        const delayMs = delays[direction]
        const due = performance.now() + delayMs
        if (delayMs === 0 && delayed === 0) return void deliver(to, chunk)
        delayed++
        // Chained promises keep the order even if the delay changes.
        sent = sent.then(() => delay(Math.max(0, due - performance.now()))).then(() => {
          delayed--
          deliver(to, chunk)
        })
      })
      // The 'close' event follows, and it is all that matters here.
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

  function freeze (): void {
    frozen = true
    all((socket) => socket.pause())
  }

  return {
    url: Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(port) }).href,
    get dialed () { return dialed },
    get requests () { return requests },
    get rounds () { return rounds },
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

    freeze,
    freezeAfter (more) { lastRound = rounds + more },

    thaw () {
      frozen = false
      lastRound = Infinity
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
