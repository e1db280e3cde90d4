import { setTimeout as delay } from 'node:timers/promises'

const CREATE = 'mutation ($title: String!, $authorId: ID) { createPost(input: { title: $title, content: "Words", authorId: $authorId }) { id cursor } }'
const PATIENCE_MS = 60_000
const PAUSE_MS = 150

export interface PostingOptions {
  /** Where the nodes are: whoever answers gets the next one. */
  urls: readonly string[]
  headers: Record<string, string>
  /** Whose the posts are, in turn. */
  authorIds: readonly string[]
}

/** Writers of posts, whose nodes and database fail: each post has a title that no other has. */
export class Posting {
  /** What was acknowledged, by title. */
  readonly acknowledged = new Map<string, { id: string, cursor: string }>()
  /** What may have been written or not: its connection broke, or the database's. */
  readonly undecided = new Map<string, string>()
  /** How often something was refused, surely not written, and sent again. */
  refused = 0
  readonly #options: PostingOptions
  #count = 0
  #stopped = false
  #onAcknowledged = () => {}

  constructor (options: PostingOptions) {
    this.#options = options
  }

  /** Writes all the time, until it is stopped. */
  async run (writers: number): Promise<void> {
    await Promise.all(Array.from({ length: writers }, async () => {
      for (; !this.#stopped; await delay(PAUSE_MS)) await this.post()
    }))
  }

  /** Writes a post: its cursor, if that was acknowledged. */
  async post (authorId?: string): Promise<string | undefined> {
    const { urls, authorIds } = this.#options
    const title = crypto.randomUUID()
    let turn = this.#count++
    authorId ??= authorIds[turn % authorIds.length]!
    for (;; turn++) {
      const answer = await this.#ask(urls[turn % urls.length]!, { title, authorId })
      if (typeof answer === 'object') {
        this.acknowledged.set(title, answer)
        this.#onAcknowledged()
        return answer.cursor
      }
      // Nothing was sent to a node that is not there, and to the database nothing by one that has too much to do.
      if (answer !== 'ECONNREFUSED' && answer !== 'OVERLOADED') return void this.undecided.set(title, answer)
      this.refused++
      await delay(PAUSE_MS)
    }
  }

  /** Resolves when so many more have been acknowledged. */
  async more (count: number): Promise<void> {
    for (const { size } = this.acknowledged; this.acknowledged.size < size + count;) await new Promise<void>((resolve) => { this.#onAcknowledged = resolve })
  }

  stop (): void {
    this.#stopped = true
  }

  // What was created, or why not.
  async #ask (url: string, variables: object): Promise<{ id: string, cursor: string } | string> {
    try {
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { ...this.#options.headers, 'content-type': 'application/json' },
        body: JSON.stringify({ query: CREATE, variables }),
        signal: AbortSignal.timeout(PATIENCE_MS),
      })
      const { data, errors } = await response.json() as any
      return data?.createPost ?? errors[0].extensions.code
    } catch (error) {
      return ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code ?? (error as Error).message
    }
  }
}
