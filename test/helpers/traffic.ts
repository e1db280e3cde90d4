import { setTimeout as delay } from 'node:timers/promises'
import type { Write } from './writes.ts'

export interface Traffic {
  /** How many times each outcome occurred: a status, the code of a GraphQL error, or how the connection failed. */
  readonly answers: Record<string, number>
  readonly writes: Write[]
  /** Resolves when this many more rounds of each client have succeeded completely. */
  flow (count: number): Promise<void>
  stop (): Promise<void>
}

const CREATE_POST = 'mutation ($title: String!) { createPost(input: { title: $title, content: "Words" }) { id } }'
// How a node refuses requests while the database or the node itself is slow.
const TEMPORARY = /DATABASE_UNAVAILABLE|OVERLOADED/
const TIMEOUT_MS = 60_000
const PAUSE_MS = 20

/** Returns the outcomes that are not expected. */
export const unlike = (answers: Traffic['answers'], expected: readonly string[]): Traffic['answers'] =>
  Object.fromEntries(Object.entries(answers).filter(([answer]) => !expected.includes(answer)))

/**
 * Starts clients that read, create users and create posts in turn. Their connections are kept alive and are idle for
 * short times.
 */
export function startTraffic (
  { url, headers }: { url: string, headers: Record<string, string> }, clients = 20
): Traffic {
  const answers: Record<string, number> = {}
  const writes: Write[] = []
  const stopping = new AbortController()
  let [good, look] = [0, () => {}]
  const ended = Promise.all(Array.from({ length: clients }, client))

  async function client (): Promise<void> {
    while (!stopping.signal.aborted) {
      const user: Write = { kind: 'user', name: `${crypto.randomUUID()}@example.org` }
      const post: Write = { kind: 'post', name: `Post ${crypto.randomUUID()}` }
      await write(user, '/api/users', { name: 'Traffic', email: user.name })
      await send(`/api/users${user.id ? `/${user.id}` : '?limit=1'}`)
      await write(post, '/graphql', { query: CREATE_POST, variables: { title: post.name } })
      if (!user.id || !post.id) continue
      good++
      look()
    }
  }

  async function write (write: Write, path: string, body: object): Promise<void> {
    writes.push(write)
    const answer = await send(path, { method: 'POST', body: JSON.stringify(body) })
    const id = answer?.id ?? answer?.data?.createPost.id
    if (id) write.id = id
  }

  async function send (path: string, init: RequestInit = {}): Promise<any> {
    await delay(Math.random() * PAUSE_MS)
    try {
      const response = await fetch(`${url}${path}`, {
        ...init, headers: { ...headers, 'content-type': 'application/json' }, signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      const text = await response.text()
      const body = response.ok ? JSON.parse(text) : undefined
      const isUnexpected = response.status === 503 && !TEMPORARY.test(text)
      count(isUnexpected ? `503 ${text.slice(0, 100)}` : body?.errors?.[0].extensions.code ?? String(response.status))
      return body?.errors ? undefined : body
    } catch (error) {
      const { name, message, cause } = error as Error & { cause?: NodeJS.ErrnoException }
      count(`${name} ${cause?.code ?? message}`)
    }
  }

  function count (answer: string): void {
    answers[answer] = (answers[answer] ?? 0) + 1
  }

  return {
    answers,
    writes,

    async flow (count) {
      const goal = good + count
      await new Promise<void>((resolve) => { look = () => { if (good >= goal) resolve() } })
    },

    async stop () {
      stopping.abort()
      await ended
    },
  }
}
