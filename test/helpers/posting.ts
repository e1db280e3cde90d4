import { setTimeout as delay } from 'node:timers/promises'

const CREATE =
  'mutation ($title: String!, $authorId: ID) { createPost(input: { title: $title, content: "Words", authorId: $authorId }) { id cursor } }'
const TIMEOUT_MS = 60_000
const PAUSE_MS = 150

export interface PostingOptions {
  /** The URLs of the nodes, which get the posts in turn. */
  urls: readonly string[]
  headers: Record<string, string>
  /** The ids of the authors, who are used in turn. */
  authorIds: readonly string[]
}

/** Clients that create posts while nodes and the database fail. Each post has a unique title. */
export class Posting {
  /** The acknowledged posts by title. */
  readonly acknowledged = new Map<string, { id: string, cursor: string }>()
  /** The posts that may or may not have been written, because a connection broke. Maps the title to the reason. */
  readonly undecided = new Map<string, string>()
  /** How often a request was rejected, which means that nothing was written, and sent again. */
  refused = 0
  readonly #options: PostingOptions
  #count = 0
  #stopped = false
  #onAcknowledged = () => {}

  constructor (options: PostingOptions) {
    this.#options = options
  }

  /** Writes posts with this many clients until `stop` is called. */
  async run (writers: number): Promise<void> {
    await Promise.all(Array.from({ length: writers }, async () => {
      for (; !this.#stopped; await delay(PAUSE_MS)) await this.post()
    }))
  }

  /** Creates a post. Returns its cursor, or undefined if it was not acknowledged. */
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
      // With ECONNREFUSED nothing was sent to the node, and with OVERLOADED the node has sent nothing to the database.
      if (answer !== 'ECONNREFUSED' && answer !== 'OVERLOADED') return void this.undecided.set(title, answer)
      this.refused++
      await delay(PAUSE_MS)
    }
  }

  /** Writes posts until one is acknowledged. Returns its cursor. */
  async postUntilAcknowledged (authorId?: string): Promise<string> {
    for (;;) {
      const cursor = await this.post(authorId)
      if (cursor !== undefined) return cursor
    }
  }

  /** Resolves when `count` more posts have been acknowledged. */
  async more (count: number): Promise<void> {
    for (const { size } = this.acknowledged; this.acknowledged.size < size + count;) {
      await new Promise<void>((resolve) => { this.#onAcknowledged = resolve })
    }
  }

  stop (): void {
    this.#stopped = true
  }

  // Returns the created post, or the error code.
  async #ask (url: string, variables: object): Promise<{ id: string, cursor: string } | string> {
    try {
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { ...this.#options.headers, 'content-type': 'application/json' },
        body: JSON.stringify({ query: CREATE, variables }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      const { data, errors } = await response.json() as any
      return data?.createPost ?? errors[0].extensions.code
    } catch (error) {
      return ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code ?? (error as Error).message
    }
  }
}
