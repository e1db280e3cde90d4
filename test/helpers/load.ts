import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { LoggedIn, TestUsher } from './app.ts'

/** An answer to one of many requests: `sent` and `took` in milliseconds. */
export interface Answer { what: string, status: number, retryAfter: string | null, sent: number, took: number, body: string }

export interface Load {
  readonly answers: Answer[]
  /** Resolves with the first answer to a request sent from now on that has this status. */
  next (status: number): Promise<Answer>
  stop (): Promise<void>
  /** Milliseconds for which the machine kept this process, clients and node, from running at the most. */
  readonly lag: number
  /** Rejects when the first of the clients finds nobody. */
  readonly ended: Promise<unknown>
}

const PATIENCE_MS = 60_000
const PAUSE_MS = 50

/**
 * Fifty clients, each sending its next request as the last one is answered: reads, lists, protected reads, single
 * writes, transactions, and a login. A request that is not answered rejects `stop`.
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
    (client) => [`/users/${users[client % 5]!.id}`, write('PUT', { name: 'Transaction', email: users[client % 5]!.email, role: 'user' })],
    () => ['/users', write('POST', { name: 'New', email: `${crypto.randomUUID()}@example.com` })],
  ]

  function write (method: string, body: object): RequestInit {
    return { method, headers: { ...json, ...admin.headers }, body: JSON.stringify(body) }
  }

  async function send ([path, init]: [string, RequestInit]): Promise<void> {
    const sent = performance.now()
    const response = await fetch(`${api}${path}`, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) })
    const body = await response.text()
    const what = `${init.method ?? 'GET'} ${path.replace(/[0-9a-f-]{36}/, ':id')}`
    const answer = { what, status: response.status, retryAfter: response.headers.get('retry-after'), sent, took: performance.now() - sent, body }
    answers.push(answer)
    for (const listener of listeners) listener(answer)
    // What is measured is the database's absence, not how much the machine can take.
    await delay(PAUSE_MS)
  }

  async function client (index: number): Promise<void> {
    while (!stopping.signal.aborted) await send(works[index % works.length]!(index))
  }

  // One at a time: what limits logins is argon2.
  async function login (): Promise<void> {
    const { email, password } = users[0]!
    while (!stopping.signal.aborted) await send(['/auth/login', { method: 'POST', headers: json, body: JSON.stringify({ email, password }) }])
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
