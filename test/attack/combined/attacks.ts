import { setTimeout as delay } from 'node:timers/promises'
import { writeRequest, type Request } from '../exchange.ts'
import { HttpConnection, NodeIsDown, type Target } from '../http-connection.ts'
import { RawSocket } from '../web-socket.ts'
import { attackerAddress, forwardedFor, type Origin } from './origins.ts'
import type { AttackerConfiguration } from './phases.ts'

/**
 * An attack that a number of clients repeat until they are stopped. All rates are fixed and do not depend on responses.
 */
export interface CombinedAttack {
  /** The last bytes of the addresses that it comes from: 127.0.0.x. */
  readonly hosts: readonly number[]
  clients (configuration: AttackerConfiguration): number
  /** Whether it only makes sense behind a proxy: what it uses up has a limit for each network. */
  readonly isProxied?: boolean
  /** Runs one client once. It is called again as soon as it ends. */
  attack (client: Client): Promise<void>
}

export interface Client {
  readonly target: Target
  readonly address: string
  readonly index: number
  readonly origin: Origin | undefined
  readonly configuration: AttackerConfiguration
  readonly signal: AbortSignal
}

const DROP_MS = 1000
const READER_MS = 10_000
const JSON_TYPE = { 'content-type': 'application/json' }

/** Waits for a time, or until the phase ends. */
async function pause ({ signal }: Client, milliseconds: number): Promise<void> {
  await delay(milliseconds, undefined, { signal })
    .catch((error: Error) => { if (error.name !== 'AbortError') throw error })
}

// The networks take turns, so that each request of a client comes from another one.
function headersOf (client: Client, count = 0): Record<string, string> {
  const { origin, index, configuration: { networks, attack } } = client
  if (origin === undefined) return {}
  const step = attacks[attack]!.clients(client.configuration)
  return forwardedFor(attackerAddress(origin, networks, index + count * step))
}

const linesOf = (headers: Record<string, string>) =>
  Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join('')

async function drip (client: Client, first: string, drop: () => string): Promise<void> {
  const connection = await HttpConnection.open(client.target, client.address)
  connection.send(first)
  while (!client.signal.aborted && connection.isUsable) {
    await pause(client, DROP_MS)
    connection.send(drop())
  }
  await connection.close()
}

/** Sends requests at a fixed pace. A client without a response to its last request delays the next one. */
async function repeat (client: Client, everyMs: number, request: (count: number) => Request): Promise<void> {
  const connection = await HttpConnection.open(client.target, client.address)
  // The clients start at different times.
  await pause(client, Math.random() * everyMs)
  for (let count = 0; !client.signal.aborted && connection.isUsable; count++) {
    const due = pause(client, everyMs)
    const { headers, ...rest } = request(count)
    connection.send(writeRequest({ ...rest, headers: { ...headers, ...headersOf(client, count) } }))
    await Promise.race([connection.reply().catch(() => {}), untilAborted(client)])
    await due
  }
  await connection.close()
}

function untilAborted ({ signal }: Client): Promise<void> {
  return new Promise((resolve) =>
    signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true }))
}

async function openSocket (client: Client): Promise<RawSocket | undefined> {
  const { target, address } = client
  const headers = Object.entries(headersOf(client)).map((pair) => pair.join(': '))
  const opening = RawSocket.open(target, { address, headers, protocol: 'graphql-transport-ws' })
  const socket = await Promise.race([opening, untilAborted(client)])
  if (typeof socket !== 'object') {
    // It may be opened after the end of the phase.
    opening.then((late) => typeof late === 'object' ? late.close() : undefined, () => {})
    await pause(client, DROP_MS)
    return undefined
  }
  socket.send({ type: 'connection_init' })
  await socket.hear(({ type }) => type === 'connection_ack', DROP_MS)
  return socket
}

const postJson = (path: string, body: object): Request =>
  ({ method: 'POST', path, headers: JSON_TYPE, body: JSON.stringify(body) })

/** All parts of the combined attack, which run at the same time. */
export const attacks: Readonly<Record<string, CombinedAttack>> = {
  'slow-heads': {
    hosts: [2],
    clients: ({ slow }) => slow,
    attack: (client) => drip(
      client, `GET /api/users HTTP/1.1\r\nhost: localhost\r\n${linesOf(headersOf(client))}`, () => 'x: y\r\n'
    ),
  },

  'slow-bodies': {
    hosts: [3],
    clients: ({ slow }) => slow,
    attack: (client) => drip(
      client,
      `POST /graphql HTTP/1.1\r\nhost: localhost\r\n${linesOf(headersOf(client))}content-type: application/json\r\ncontent-length: 1000\r\n\r\n`,
      () => ' '
    ),
  },

  'slow-readers': {
    hosts: [4],
    clients: ({ slow }) => slow,
    async attack (client) {
      const connection = await HttpConnection.open(client.target, client.address)
      connection.socket.pause()
      // The kernel's buffers hold about thirty responses. Sending all requests at once would be a flood, which is
      // another attack.
      await pause(client, Math.random() * READER_MS)
      while (!client.signal.aborted && connection.isUsable) {
        connection.send(writeRequest({ method: 'GET', path: '/api/users?limit=1000', headers: headersOf(client) }))
        await pause(client, READER_MS)
      }
      await connection.close()
    },
  },

  // 200 logins a second, like bench/login-flood.ts.
  'login-flood': {
    hosts: [5, 6],
    clients: () => 200,
    attack: (client) => repeat(client, 1000, (count) => ({
      method: 'POST',
      path: '/api/auth/login',
      headers: JSON_TYPE,
      body: JSON.stringify({ email: `user${client.index}-${count}@example.com`, password: 'a wrong password' }),
    })),
  },

  'expensive-queries': {
    hosts: [7, 8],
    clients: () => 8,
    attack: (client) => repeat(client, 500, (count) => ({
      method: 'POST', path: '/graphql', headers: JSON_TYPE, body: JSON.stringify({ query: expensive(client, count) }),
    })),
  },

  'ping-flood': {
    hosts: [10, 11],
    clients: () => 10,
    async attack (client) {
      const socket = await openSocket(client)
      if (!socket) return
      if (client.index % 2 === 0) socket.connection.socket.pause()
      for (; !client.signal.aborted && socket.isOpen; await pause(client, 100)) {
        for (let count = 0; count < 20; count++) socket.send('{"type":"ping"}')
        socket.messages.length = 0
      }
      await socket.close()
      await pause(client, DROP_MS)
    },
  },

  // As many different subscriptions as all clients together may have.
  subscriptions: {
    hosts: [12],
    isProxied: true,
    clients: () => 2000,
    async attack (client) {
      await pause(client, Math.random() * DROP_MS)
      const socket = await openSocket(client)
      if (!socket) return
      const query = `subscription { s${client.index}: postCreated { id } }`
      socket.send({ type: 'subscribe', id: '1', payload: { query } })
      while (!client.signal.aborted && socket.isOpen) {
        await pause(client, READER_MS)
        socket.messages.length = 0
      }
      await socket.close()
    },
  },

  'sign-ups': {
    hosts: [13],
    isProxied: true,
    clients: () => 50,
    attack: (client) => repeat(client, 1000, (count) => postJson('/api/auth/sign-up', {
      name: 'Nobody', email: `nobody${client.index}-${count}-${Date.now()}@example.com`, password: 'an unusual phrase',
    })),
  },

  'login-mails': requestsForMails(14, '/api/auth/login/mail'),
  resets: requestsForMails(15, '/api/auth/password-reset'),

  refreshes: {
    hosts: [16],
    isProxied: true,
    clients: () => 50,
    attack: (client) => repeat(client, 1000, (count) => ({
      method: 'POST',
      path: '/api/auth/refresh',
      headers: { cookie: `usher_session=${`${client.index}-${count}`.padEnd(43, 'x')}` },
    })),
  },

  // Each page begins at another place, so that none shares a statement.
  'long-pages': {
    hosts: [17],
    isProxied: true,
    clients: () => 20,
    attack: (client) => repeat(client, 1000, (count) => ({
      method: 'GET', path: `/api/users?limit=1000&q=us&sort=${count % 2 ? '-' : ''}name&role=user`,
    })),
  },
}

// Users who ask for mails, at most once a second each.
function requestsForMails (host: number, path: string): CombinedAttack {
  return {
    hosts: [host],
    isProxied: true,
    clients: () => 20,
    attack: (client) => repeat(client, 1000, (count) => postJson(path, {
      email: `user${client.index * 50 + count}@bench.example.com`,
    })),
  }
}

// Every other document is new, so no cache contains it.
function expensive ({ index, configuration: { longWinded } }: Client, count: number): string {
  const author = JSON.stringify(longWinded)
  const queries = [
    `{ posts(authorId: ${author}, first: 100) { nodes { author { posts(first: 99) { content } } } } }`,
    `{ users(first: 100) { nodes { posts(first: 100) { author { posts(first: 100) { title } } } } } } # ${index} ${count}`,
    `{ ${Array.from({ length: 45 }, (_, alias) => `a${alias}: posts(authorId: ${author}, first: 100) { nodes { content } }`).join(' ')} }`,
    `{ ${Array.from({ length: 150 }, (_, field) => `u${field % 40}: user(id: ${author}) { f${field}_${count}: name }`).join(' ')} }`,
  ]
  return queries[(index + count) % queries.length]!
}

/** Repeats an attack until the phase ends. */
export async function persist (client: Client, { attack }: CombinedAttack): Promise<void> {
  while (!client.signal.aborted) {
    try {
      await attack(client)
    } catch (error) {
      if (!(error instanceof NodeIsDown)) throw error
    }
    // If a node closes connections at once, the client must not reconnect in a busy loop.
    await pause(client, 100)
  }
}
