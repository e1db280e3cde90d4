import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from 'postgres'

/** A user or a post that a client tries to create, with a unique name: the email address or the title. */
export interface Write {
  readonly kind: 'user' | 'post'
  readonly name: string
  /** The id of the created row, once the write is acknowledged. */
  id?: string
  refusal?: { status: number, retryAfter: string | null, code: string }
}

export interface Writes {
  /** All writes in the order in which they were sent. A write with neither `id` nor `refusal` got no response. */
  readonly sent: Write[]
  /** Resolves when `count` writes of each kind, sent from now on, are acknowledged. */
  acknowledge (count: number): Promise<void>
  /** Resolves when every client has failed to connect. */
  readonly ended: Promise<void>
  stop (): Promise<void>
}

const CREATE_POST = 'mutation ($title: String!) { createPost(input: { title: $title, content: "Words" }) { id title } }'
const TIMEOUT_MS = 60_000
const PAUSE_MS = 50

/**
 * Starts clients that create users and posts in turn over kept-alive connections. Each sends its next request when it
 * has the response to the last one, until the node is gone. A request that hangs, or a response that belongs to another
 * request, rejects all promises of the result.
 */
export function startWrites ({ url, headers }: { url: string, headers: Record<string, string> }, clients = 32): Writes {
  const sent: Write[] = []
  const watchers = new Set<() => void>()
  const stopping = new AbortController()
  const ended = Promise.all(Array.from({ length: clients }, client)).then(() => {})

  async function client (): Promise<void> {
    while (!stopping.signal.aborted) {
      if (!await send({ kind: 'user', name: `${crypto.randomUUID()}@example.org` })) return
      if (!await send({ kind: 'post', name: `Post ${crypto.randomUUID()}` })) return
    }
  }

  /** Returns whether there was a response. */
  async function send (write: Write): Promise<boolean> {
    sent.push(write)
    const [path, payload] = write.kind === 'user'
      ? ['/api/users', { name: 'Load', email: write.name }]
      : ['/graphql', { query: CREATE_POST, variables: { title: write.name } }]
    const answer = await post(`${url}${path}`, payload)
    if (!answer) return false
    const { status, retryAfter, body } = answer
    const created = status === 201 ? body : body.data?.createPost
    if (!created) {
      write.refusal = { status, retryAfter, code: body.code ?? body.errors[0].extensions.code }
    } else if ((created.email ?? created.title) !== write.name) {
      throw new Error(`${write.name} got ${JSON.stringify(body)}`)
    } else {
      write.id = created.id
    }
    for (const look of watchers) look()
    // After a rejection the client pauses, which leaves the CPU to the node that recovers.
    if (!created) await delay(PAUSE_MS)
    return true
  }

  async function post (url: string, payload: object) {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(payload),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      return {
        status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() as any,
      }
    } catch (error) {
      if ((error as Error).name === 'TimeoutError') throw error
    }
  }

  async function acknowledge (count: number): Promise<void> {
    const since = sent.length
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(
      () => reject(new Error(`fewer than ${count} writes of each kind were acknowledged within 60 s`)), TIMEOUT_MS
    )
    const isDone = (kind: Write['kind']) =>
      sent.slice(since).filter((write) => write.kind === kind && write.id).length >= count
    const look = () => { if (isDone('user') && isDone('post')) resolve() }
    watchers.add(look)
    await Promise.race([promise, ended.then(() => { throw new Error('the node is gone') })])
      .finally(() => clearTimeout(timer))
    watchers.delete(look)
  }

  return {
    sent,
    ended,

    acknowledge,

    async stop () {
      stopping.abort()
      await ended
    },
  }
}

/**
 * Compares the acknowledged writes with the database. The result equals `noFaults` if each acknowledged write is there
 * once and no write is there twice.
 */
export async function findFaults (sql: Sql, writes: readonly Write[]) {
  const rows = await sql<{ id: string, name: string }[]>`
    select id, email as name from users where email like '%@example.org' union all select id, title from posts where title like 'Post %'`
  const there = Map.groupBy(rows, ({ name }) => name)
  const sent = new Set(writes.map(({ name }) => name))
  return {
    lost: writes.filter(({ id, name }) => id && !there.get(name)?.some((row) => row.id === id)),
    twice: [...there].filter(([, rows]) => rows.length > 1),
    unasked: rows.filter(({ name }) => !sent.has(name)),
  }
}

export const noFaults = { lost: [], twice: [], unasked: [] }
