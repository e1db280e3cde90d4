import type { PostRow } from '../../db/posts/posts.ts'
import { positionOf, type RecentPosts } from './recent-posts.ts'

/** The number of posts in a page that is read from the database. */
export const POSTS_PER_PAGE = 50

/** What a stream reads its posts from. */
export interface Source {
  /** The recent posts in memory. */
  readonly recent: RecentPosts
  /** Reads a page of the posts after a position from the database, of all authors or of one. */
  read (after: number, authorId: string | undefined): Promise<PostRow[]>
  /** Resolves when a page that could not be read may be tried again. Rejects when the app closes. */
  wait (error: unknown): Promise<void>
  /** Registers a stream, which is woken when there are more posts, until it leaves. */
  enter (stream: PostStream): void
  leave (stream: PostStream): void
}

export interface PostStreamOptions {
  /** The position after which the stream begins. */
  position: number
  epoch: number
  /** The author of the posts; undefined for posts of all authors. */
  authorId: string | undefined
  /** Whether there are no posts after `position` yet. */
  isLatest?: boolean
}

/** An event: a post that was created. */
export interface PostEvent { postCreated: PostRow }

/**
 * Yields the posts after a position, of all authors or of one, exactly once, in commit order and without end. Older
 * posts are read from the database, page by page, so a reader may be arbitrarily slow or late. Posts that were deleted
 * by then are left out. A reader that has caught up gets new posts from memory.
 */
export class PostStream implements AsyncIterableIterator<PostEvent> {
  /** The position up to which all posts have been yielded. */
  position: number
  /** The epoch in which the stream began. */
  readonly epoch: number
  /** Whether the stream is waiting for new posts. */
  idle = false
  /** Called when the stream begins to wait for new posts. */
  onIdle: () => void = () => {}
  readonly #source: Source
  readonly #authorId: string | undefined
  #page: readonly PostRow[] = []
  // The position up to which the page is complete.
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

  /** Returns a stream of the same posts from another position on. */
  fork (position: number): PostStream {
    return new PostStream(this.#source, { position, epoch: this.epoch, authorId: this.#authorId })
  }

  /** Whether the stream has caught up, and its next posts are in memory. */
  get live (): boolean {
    return this.#caughtUp && this.position >= this.#source.recent.from
  }

  async next (): Promise<IteratorResult<PostEvent, undefined>> {
    while (!this.#closed) {
      const post = this.#page[this.#index++]
      if (post) {
        this.position = positionOf(post)
        if (this.#authorId === undefined || post.authorId === this.#authorId) {
          return { value: { postCreated: post }, done: false }
        }
      } else {
        this.position = Math.max(this.position, this.#until)
        await this.#turn()
      }
    }
    if (this.#failure) throw this.#failure
    return { value: undefined, done: true }
  }

  /** The amount of content that was read but not yielded yet, in UTF-16 code units. */
  get bytesAhead (): number {
    let bytes = 0
    for (let index = this.#index; index < this.#page.length; index++) bytes += this.#page[index]!.content.length
    return bytes
  }

  /** Drops the posts that were read but not yielded yet. They are read again later. */
  release (): void {
    this.#page = []
    this.#index = 0
    this.#until = this.position
  }

  /** Ends the stream. Its consumer must call this. */
  close (): void {
    if (this.#closed) return
    this.#closed = true
    this.#source.leave(this)
    this.#wake()
  }

  /** Ends the stream with an error, which `next` throws. */
  fail (failure: Error): void {
    this.#failure = failure
    this.close()
  }

  /** Continues a stream that waits for new posts. Called when there may be some. */
  wake (): void {
    this.#wake()
  }

  [Symbol.asyncIterator] (): this {
    return this
  }

  // Gets the next page, from memory or from the database, or waits until there may be one.
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

  // The posts in memory were committed before the page is read. A page that is not full is therefore complete up to
  // `until`.
  async #readPage (until: number): Promise<void> {
    try {
      this.#page = await this.#source.read(this.position, this.#authorId)
      this.#caughtUp = this.#page.length < POSTS_PER_PAGE
      this.#until = this.#caughtUp ? until : this.position
    } catch (error) {
      await this.#source.wait(error)
    }
  }
}
