import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { LoggedIn, TestUsher } from './app.ts'

/** The response to one request. `sent` and `took` are in milliseconds. */
export interface Answer {
  what: string
  status: number
  retryAfter: string | null
  sent: number
  took: number
  body: string
}

export interface Load {
  readonly answers: Answer[]
  /** Resolves with the first response that has this status, among those to requests sent from now on. */
  next (status: number): Promise<Answer>
  stop (): Promise<void>
  /** The longest time in milliseconds for which this process, with the clients and the node in it, did not run. */
  readonly lag: number
  /** Rejects when the first client cannot connect. */
  readonly ended: Promise<unknown>
}

const TIMEOUT_MS = 60_000
const PAUSE_MS = 50

/**
 * Starts fifty clients. Each sends its next request as soon as it has the response to the last one. They send reads,
 * lists, protected reads, single writes, transactions and logins. `stop` rejects if a request got no response.
 */
export async function createLoad ({ app, admin, createUser, options }: TestUsher): Promise<Load> {
  const base = app.server.listening ? addressOf(app) : await app.listen({ port: 0, host: '127.0.0.1' })
  const api = `${base}${options.prefix ?? ''}/api`
  const users: LoggedIn[] = []
  for (let count = 0; count < 5; count++) users.push(await createUser())
  const answers: Answer[] = []
  const listeners = new Set<(answer: Answer) => void>()
  const stopping = new AbortController()
  const delays = monitorEventLoopDelay({ resolution: 10 })
  delays.enable()

  const json = { 'content-type': 'application/json' }
  const works: ((client: number) => [path: string, init: RequestInit])[] = [
    (client) => [`/users/${users[client % 5]!.id}`, {}],
    () => ['/users?limit=5', {}],
    () => ['/protected', { headers: admin.headers }],
    (client) => [`/users/${users[client % 5]!.id}`, write('PUT', { name: 'Single', email: users[client % 5]!.email })],
    (client) => [`/users/${users[client % 5]!.id}`, write(
      'PUT', { name: 'Transaction', email: users[client % 5]!.email, role: 'user' }
    )],
    () => ['/users', write('POST', { name: 'New', email: `${crypto.randomUUID()}@example.com` })],
  ]

  function write (method: string, body: object): RequestInit {
    return { method, headers: { ...json, ...admin.headers }, body: JSON.stringify(body) }
  }

  async function send ([path, init]: [string, RequestInit]): Promise<void> {
    const sent = performance.now()
    const response = await fetch(`${api}${path}`, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
    const body = await response.text()
    const what = `${init.method ?? 'GET'} ${path.replace(/[0-9a-f-]{36}/, ':id')}`
    const answer = {
      what,
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      sent,
      took: performance.now() - sent,
      body,
    }
    answers.push(answer)
    for (const listener of listeners) listener(answer)
    // The test measures how the node handles a missing database, not how much the machine can do.
    await delay(PAUSE_MS)
  }

  async function client (index: number): Promise<void> {
    while (!stopping.signal.aborted) await send(works[index % works.length]!(index))
  }

  // Only one client logs in, because argon2 limits the number of logins per second.
  async function login (): Promise<void> {
    const { email, password } = users[0]!
    while (!stopping.signal.aborted) {
      await send(['/auth/login', { method: 'POST', headers: json, body: JSON.stringify({ email, password }) }])
    }
  }

  const clients = Promise.all([login(), ...Array.from({ length: 49 }, (_, index) => client(index))])

  return {
    answers,
    ended: clients,
    get lag () { return delays.max / 1e6 },

    next (status) {
      const since = performance.now()
      return new Promise((resolve) => {
        listeners.add(function listener (answer) {
          if (answer.status !== status || answer.sent < since) return
          listeners.delete(listener)
          resolve(answer)
        })
      })
    },

    async stop () {
      stopping.abort()
      await clients
      delays.disable()
    },
  }
}

function addressOf ({ server }: TestUsher['app']): string {
  const { port } = server.address() as { port: number }
  return `http://127.0.0.1:${port}`
}
