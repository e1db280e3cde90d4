import { charactersOf, positionOf, type Followed, type RecentPosts } from './recent-posts.ts'

/** The number of events in a page that is read from the database. */
export const POSTS_PER_PAGE = 50

/** What a stream reads its events from. */
export interface Source<Event extends Followed> {
  /** The recent events in memory. */
  readonly recent: RecentPosts<Event>
  /** Reads a page of the events after a position from the database, of the posts of all authors or of one. */
  read (after: number, authorId: string | undefined): Promise<Event[]>
  /** Resolves when a page that could not be read may be tried again. Rejects when the app closes. */
  wait (error: unknown): Promise<void>
  /** Registers a stream, which is woken when there are more events, until it leaves. */
  enter (stream: PostStream<Event>): void
  leave (stream: PostStream<Event>): void
}

export interface PostStreamOptions {
  /** The position after which the stream begins. */
  position: number
  epoch: number
  /** The author of the posts; undefined for posts of all authors. */
  authorId: string | undefined
  /** Whether there are no events after `position` yet. */
  isLatest?: boolean
}

/**
 * Yields the events after a position, of the posts of all authors or of one, exactly once, in commit order and without
 * end: new posts, or their changes and deletions as well. Older events are read from the database, page by page, so a
 * reader may be arbitrarily slow or late. Posts that were deleted by then are left out, and so are changes that another
 * one has followed. A reader that has caught up gets new events from memory.
 */
export class PostStream<Event extends Followed> implements AsyncIterableIterator<Event> {
  /** The position up to which all events have been yielded. */
  position: number
  /** The epoch in which the stream began. */
  readonly epoch: number
  /** Whether the stream is waiting for new events. */
  idle = false
  /** Called when the stream begins to wait for new events. */
  onIdle: () => void = () => {}
  readonly #source: Source<Event>
  readonly #authorId: string | undefined
  #page: readonly Event[] = []
  // The position up to which the page is complete.
  #until: number
  #index = 0
  #wake = () => {}
  #caughtUp: boolean
  #closed = false
  #failure: Error | undefined

  constructor (source: Source<Event>, { position, epoch, authorId, isLatest = false }: PostStreamOptions) {
    this.#source = source
    this.position = this.#until = position
    this.epoch = epoch
    this.#authorId = authorId
    this.#caughtUp = isLatest
    source.enter(this)
  }

  /** Returns a stream of the same events from another position on. */
  fork (position: number): PostStream<Event> {
    return new PostStream(this.#source, { position, epoch: this.epoch, authorId: this.#authorId })
  }

  /** Whether the stream has caught up, and its next events are in memory. */
  get live (): boolean {
    return this.#caughtUp && this.position >= this.#source.recent.from
  }

  async next (): Promise<IteratorResult<Event, undefined>> {
    while (!this.#closed) {
      const event = this.#page[this.#index++]
      if (event) {
        this.position = positionOf(event)
        if (this.#authorId === undefined || event.authorId === this.#authorId) return { value: event, done: false }
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
    for (let index = this.#index; index < this.#page.length; index++) bytes += charactersOf(this.#page[index]!)
    return bytes
  }

  /** Drops the events that were read but not yielded yet. They are read again later. */
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

  /** Continues a stream that waits for new events. Called when there may be some. */
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

  // The events in memory were committed before the page is read. A page that is not full is therefore complete up to
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
