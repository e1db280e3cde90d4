import type { PostRow } from '../../db/posts.ts'
import { positionOf, type RecentPosts } from './recent-posts.ts'

/** Of how many posts a page is that is read from the database. */
export const POSTS_A_PAGE = 50

/** Where a stream of posts comes from. */
export interface Source {
  /** What is at hand. */
  readonly recent: RecentPosts
  /** A page of the posts after a position, of all authors or of one, from the database. */
  read (after: number, authorId: string | undefined): Promise<PostRow[]>
  /** After a page could not be read: resolves when it may be tried again. */
  wait (error: unknown): Promise<void>
  /** Wakes a stream when there are more posts, until it leaves. */
  enter (stream: PostStream): void
  leave (stream: PostStream): void
}

export interface PostStreamOptions {
  /** After which posts it begins. */
  position: number
  epoch: number
  /** Of all authors if it is undefined. */
  authorId: string | undefined
  /** Whether there are no posts after that position yet. */
  isLatest?: boolean
}

/** An event: a post that was created. */
export interface PostEvent { postCreated: PostRow }

/**
 * The posts after a position, of all authors or of one: each once, in the order of their commits, for ever. What was
 * created before is read from the database, so that a reader may be as slow or as late as it likes; and what is gone
 * since is not told. Who has caught up gets what is new from memory.
 */
export class PostStream implements AsyncIterableIterator<PostEvent> {
  /** Up to where all posts have been given out. */
  position: number
  /** The epoch in which it began. */
  readonly epoch: number
  /** Whether there is nothing more for now. */
  idle = false
  /** Called when there is nothing more for now. */
  onIdle: () => void = () => {}
  readonly #source: Source
  readonly #authorId: string | undefined
  #page: readonly PostRow[] = []
  // Up to where the page tells all.
  #until: number
  #index = 0
  #wake = () => {}
  #caughtUp: boolean
  #closed = false
  #failure: Error | undefined

  constructor (source: Source, { position, epoch, authorId, isLatest = false }: PostStreamOptions) {
    this.#source = source
    this.position = this.#until = position
    this.epoch = epoch
    this.#authorId = authorId
    this.#caughtUp = isLatest
    source.enter(this)
  }

  /** The same from another position on. */
  fork (position: number): PostStream {
    return new PostStream(this.#source, { position, epoch: this.epoch, authorId: this.#authorId })
  }

  /** Whether it keeps up with what is being created. */
  get live (): boolean {
    return this.#caughtUp && this.position >= this.#source.recent.from
  }

  async next (): Promise<IteratorResult<PostEvent, undefined>> {
    while (!this.#closed) {
      const post = this.#page[this.#index++]
      if (post) {
        this.position = positionOf(post)
        if (this.#authorId === undefined || post.authorId === this.#authorId) return { value: { postCreated: post }, done: false }
      } else {
        this.position = Math.max(this.position, this.#until)
        await this.#turn()
      }
    }
    if (this.#failure) throw this.#failure
    return { value: undefined, done: true }
  }

  /** How many bytes of content it has read and not given out. */
  get bytesAhead (): number {
    let bytes = 0
    for (let index = this.#index; index < this.#page.length; index++) bytes += this.#page[index]!.content.length
    return bytes
  }

  /** Forgets what it has read and not given out: it is read again. */
  release (): void {
    this.#page = []
    this.#index = 0
    this.#until = this.position
  }

  /** To be called by who has taken it: no more is read for it. */
  close (): void {
    if (this.#closed) return
    this.#closed = true
    this.#source.leave(this)
    this.#wake()
  }

  /** Ends it with an error for who takes it. */
  fail (failure: Error): void {
    this.#failure = failure
    this.close()
  }

  /** To be called when there are more posts. */
  wake (): void {
    this.#wake()
  }

  [Symbol.asyncIterator] (): this {
    return this
  }

  // Another page, or another wait for one.
  async #turn (): Promise<void> {
    const { recent } = this.#source
    this.#page = []
    this.#index = 0
    if (!this.live) return this.#readPage(recent.until)
    this.#page = recent.after(this.position)
    this.#until = recent.until
    if (this.#page.length > 0) return
    this.idle = true
    this.onIdle()
    if (!this.#closed) await new Promise<void>((resolve) => { this.#wake = resolve })
    this.idle = false
  }

  // What is in memory was committed before the page is read: one that is not full tells all up to there.
  async #readPage (until: number): Promise<void> {
    try {
      this.#page = await this.#source.read(this.position, this.#authorId)
      this.#caughtUp = this.#page.length < POSTS_A_PAGE
      this.#until = this.#caughtUp ? until : this.position
    } catch (error) {
      await this.#source.wait(error)
    }
  }
}
