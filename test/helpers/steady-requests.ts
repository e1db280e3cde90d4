import { setTimeout as delay } from 'node:timers/promises'

const PAUSE_MS = 20

/** Clients that read and change users and upload files on several nodes, and expect that nothing fails. */
export class SteadyRequests {
  /** The requests that failed, with the status or the error. */
  readonly failed: string[] = []
  /** The number of requests that succeeded. */
  count = 0
  readonly #urls: readonly string[]
  readonly #headers: Record<string, string>
  #stopped = false

  /** @param urls the URLs of the nodes, which may change */
  constructor (urls: readonly string[], headers: Record<string, string>) {
    this.#urls = urls
    this.#headers = headers
  }

  /** Runs this many clients until `stop` is called. */
  async run (clients: number): Promise<void> {
    await Promise.all(Array.from({ length: clients }, async () => {
      for (; !this.#stopped; await delay(PAUSE_MS)) await this.#live()
    }))
  }

  stop (): void {
    this.#stopped = true
  }

  // The life of a user, each step on a node of its own.
  async #live (): Promise<void> {
    const email = `${crypto.randomUUID()}@example.com`
    const user = await this.#send('POST', '/api/users', { name: 'Somebody', email })
    if (!user) return
    const path = `/api/users/${user.id}`
    await this.#send('GET', path)
    await this.#send('GET', '/api/users?limit=20&role=user')
    await this.#send('PUT', path, { name: 'Renamed', email })
    const form = new FormData()
    form.append('description', 'A file')
    form.append('file', new Blob(['content']), 'file.txt')
    await this.#send('POST', '/api/uploads', form)
    await this.#send('DELETE', path)
  }

  async #send (method: string, path: string, body?: object): Promise<{ id: string } | undefined> {
    const url = this.#urls[Math.floor(Math.random() * this.#urls.length)]!
    const { 'content-type': type, ...headers } = this.#headers
    const isForm = body instanceof FormData
    try {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { ...headers, ...body && !isForm && { 'content-type': type! } },
        ...body && { body: isForm ? body : JSON.stringify(body) },
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`${response.status} ${text}`)
      this.count++
      return text ? JSON.parse(text) : undefined
    } catch (error) {
      this.failed.push(
        `${method} ${path} at ${url}: ${(error as Error).message} ${((error as Error).cause as Error | undefined)?.message ?? ''}`
      )
    }
  }
}
