import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { Client } from './client.ts'
import type { Exchange, SessionHistory, TokenUse } from './history.ts'

const CLIENTS = 3
const LIVE_MS = 1000
const AFTERWARDS_MS = 1500
const INTERVAL_MS = 25
const SOCKET_INTERVAL_MS = 50
// The maximum number of pending requests to a node that does not respond.
const MOST_PENDING = 8
const WRITES = 0.15
const CREATE = 'mutation ($title: String!) { createPost(input: { title: $title, content: "Words" }) { id } }'

type Headers = Record<string, string>

/** Clients that open sessions, use their tokens on every node, end them on one node, and continue to use the tokens. */
export class SessionClients {
  readonly sessions: SessionHistory[] = []
  readonly #client: Client
  readonly #headers: Headers
  #stopped = false

  /** @param headers the headers of an admin's requests */
  constructor (client: Client, headers: Headers) {
    this.#client = client
    this.#headers = headers
  }

  async run (): Promise<void> {
    await Promise.all(Array.from({ length: CLIENTS }, async () => {
      const user = { name: 'Session', email: `${randomUUID()}@example.com`, password: `pass ${randomUUID()}` }
      // A fault may already have begun. A second attempt gets 409 if the first one took effect.
      while (!this.#stopped && ![201, 409]
        .includes((await this.#client.send(0, 'POST', '/api/users', { headers: this.#headers, body: user })).status)) {
        await delay(INTERVAL_MS)
      }
      while (!this.#stopped) await this.#useSession(user)
    }))
  }

  stop (): void {
    this.#stopped = true
  }

  async #useSession (user: { email: string, password: string }): Promise<void> {
    const { status, body, cookie } = await this.#client.send(
      this.#anyNode(), 'POST', '/api/auth/login', { body: { email: user.email, password: user.password } }
    )
    if (status !== 200) return void await delay(100)
    const headers = { authorization: `Bearer ${body.token}` }
    const { sid } = JSON.parse(Buffer.from(body.token.split('.')[1], 'base64url').toString())
    const uses: TokenUse[] = []
    const done = new AbortController()
    const using = [
      ...Array.from({ length: this.#client.nodeCount }, (_, node) => this.#useToken(node, headers, uses, done.signal)),
      this.#useSocket(this.#anyNode(), headers, uses, done.signal),
    ]
    await delay(Math.random() * LIVE_MS)
    const ending = await this.#end(sid, headers, uses)
    await delay(AFTERWARDS_MS)
    done.abort()
    await Promise.all(using)
    this.sessions.push({ id: sid, cookie: cookie!, ending, uses })
  }

  /** Ends the session on any node. Tries again if that fails. The returned exchange begins with the first attempt. */
  async #end (sid: string, headers: Headers, uses: TokenUse[]): Promise<Exchange> {
    const [method, path] = Math.random() < 0.5
      ? ['POST', '/api/auth/logout'] as const
      : ['DELETE', `/api/auth/sessions/${sid}`] as const
    const start = this.#client.now()
    for (let attempt = 0; ; attempt++) {
      const { node, end, status } = await this.#client.send(this.#anyNode(), method, path, { headers })
      if (status === 204) return { node, start, end, status }
      if (status === 401) {
        // Only these requests end the session, so a 401 to the first attempt is a wrong rejection.
        if (attempt === 0) uses.push({ kind: 'read', node, start, end, status })
        return { node, start: attempt === 0 ? Infinity : start, end, status: 204 }
      }
      await delay(INTERVAL_MS)
    }
  }

  // Requests are sent at a fixed rate, so that some of them wait on the connections of a paused node.
  async #useToken (node: number, headers: Headers, uses: TokenUse[], done: AbortSignal): Promise<void> {
    const pending = new Set<Promise<void>>()
    for (; !done.aborted; await delay(INTERVAL_MS)) {
      if (pending.size >= MOST_PENDING) continue
      const using = this.#useOnce(node, headers).then((use) => {
        uses.push(use)
        pending.delete(using)
      })
      pending.add(using)
    }
    await Promise.all(pending)
  }

  async #useOnce (node: number, headers: Headers): Promise<TokenUse> {
    if (Math.random() > WRITES) {
      return { ...timesOf(await this.#client.send(node, 'GET', '/api/protected', { headers })), kind: 'read' }
    }
    const title = randomUUID()
    const answer = await this.#client.send(
      node, 'POST', '/graphql', { headers, body: { query: CREATE, variables: { title } } }
    )
    const isRejected = answer.body?.errors?.[0]?.extensions.code === 'INVALID_TOKEN'
    return { ...timesOf(answer), status: isRejected ? 401 : answer.status, kind: 'write', title }
  }

  // The node closes the socket when the session has ended. The posts in the database show which mutations took effect.
  async #useSocket (node: number, headers: Headers, uses: TokenUse[], done: AbortSignal): Promise<void> {
    const socket = new WebSocket(`${this.#client.urlOf(node).replace('http', 'ws')}/graphql`, 'graphql-transport-ws')
    socket.on('error', () => {})
    // `once` would reject on an error, and a paused node causes one because it does not respond to the handshake.
    const closed = new Promise((resolve) => socket.on('close', resolve))
    socket.on('open', () => socket.send(JSON.stringify({ type: 'connection_init', payload: headers })))
    for (; !done.aborted && socket.readyState <= WebSocket.OPEN; await delay(SOCKET_INTERVAL_MS)) {
      if (socket.readyState !== WebSocket.OPEN) continue
      const title = randomUUID()
      const now = this.#client.now()
      socket.send(JSON.stringify({ type: 'subscribe', id: title, payload: { query: CREATE, variables: { title } } }))
      uses.push({ kind: 'socket', node, start: now, end: now, status: 0, title })
    }
    socket.terminate()
    await closed
  }

  #anyNode (): number {
    return Math.floor(Math.random() * this.#client.nodeCount)
  }
}

function timesOf ({ node, start, end, status }: Exchange): Exchange {
  return { node, start, end, status }
}
