import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

const CREATE_POST =
  'mutation ($title: String!, $authorId: ID) { createPost(input: { title: $title, content: "Words", authorId: $authorId }) { id } }'
const TIMEOUT_MS = 30_000
const PAUSE_MS = 20

export interface SteadyWriterOptions {
  url: string
  /** The headers of an admin's requests. */
  headers: Record<string, string>
  index: number
  /** Whether this client also opens and ends sessions. Each login needs a password hash. */
  logsIn: boolean
}

/** The changes that were acknowledged with a success status. */
export interface Acknowledged {
  /** Names of users by id, without the users whose last change has an unknown outcome. */
  readonly users: Map<string, string>
  readonly deleted: Set<string>
  readonly posts: Set<string>
  /** The ids of the ended sessions. */
  readonly ended: Set<string>
  readonly cookies: string[]
}

/**
 * A client that sends one write after the other, some of them transactions, and records which ones were acknowledged.
 */
export class SteadyWriter {
  readonly acknowledged: Acknowledged = {
    users: new Map(), deleted: new Set(), posts: new Set(), ended: new Set(), cookies: [],
  }

  /** Requests that were rejected or have an unknown outcome. */
  failures = 0
  readonly #options: SteadyWriterOptions
  #stopped = false

  constructor (options: SteadyWriterOptions) {
    this.#options = options
  }

  async run (): Promise<void> {
    while (!this.#stopped) {
      await (this.#options.logsIn ? this.#useSession() : this.#useUser())
      await delay(PAUSE_MS)
    }
  }

  stop (): void {
    this.#stopped = true
  }

  // Creates a user, changes it and creates posts for it. Deletes one user in ten.
  async #useUser (): Promise<void> {
    const { users, deleted, posts } = this.acknowledged
    const email = `${randomUUID()}@example.com`
    const id = (await this.#send('POST', '/api/users', { name: 'New', email }))?.id
    if (!id) return
    users.set(id, 'New')
    for (let round = 0; round < 5; round++) {
      const name = `Round ${round}`
      users.delete(id)
      if (!await this.#send('PUT', `/api/users/${id}`, { name, email, role: round % 5 === 0 ? 'user' : undefined })) {
        return
      }
      users.set(id, name)
      const { data } = await this.#send(
        'POST', '/graphql', { query: CREATE_POST, variables: { title: randomUUID(), authorId: id } }
      ) ?? {}
      if (data?.createPost) posts.add(data.createPost.id)
    }
    if (Math.random() > 0.1) return
    users.delete(id)
    // The user's posts are deleted too.
    const written = [...posts].slice(-5)
    for (const post of written) posts.delete(post)
    if (await this.#send('DELETE', `/api/users/${id}`)) deleted.add(id)
  }

  async #useSession (): Promise<void> {
    const { ended, cookies } = this.acknowledged
    const user = { email: `${randomUUID()}@example.com`, password: `pass ${randomUUID()}` }
    if (!await this.#send('POST', '/api/users', { name: 'Session', ...user })) return
    const response = await this.#fetch('POST', '/api/auth/login', user)
    if (!response?.ok) return
    const { token } = await response.json() as { token: string }
    const cookie = response.headers.getSetCookie()[0]!.split(';', 1)[0]!
    const { sid } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString())
    if (!await this.#send('POST', '/api/auth/logout', undefined, { authorization: `Bearer ${token}` })) return
    ended.add(sid)
    cookies.push(cookie)
  }

  /** Returns the body of a successful response, or undefined. */
  async #send (method: string, path: string, body?: object, headers?: Record<string, string>): Promise<any> {
    const response = await this.#fetch(method, path, body, headers)
    if (!response?.ok) return undefined
    return response.status === 204 ? {} : response.json()
  }

  async #fetch (
    method: string, path: string, body?: object, headers = this.#options.headers
  ): Promise<Response | undefined> {
    const init = {
      method,
      headers: { ...headers, ...body && { 'content-type': 'application/json' } },
      ...body && { body: JSON.stringify(body) },
    }
    try {
      const response = await fetch(`${this.#options.url}${path}`, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
      if (!response.ok) this.failures++
      return response
    } catch (error) {
      if ((error as Error).name === 'TimeoutError') throw new Error(`${method} ${path} hangs`, { cause: error })
      this.failures++
    }
  }
}
