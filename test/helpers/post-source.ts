import { setImmediate as turn } from 'node:timers/promises'
import type { PostRow } from '../../db/posts/posts.ts'
import { POSTS_PER_PAGE, type PostStream, type Source } from '../../plugins/posts/post-stream.ts'
import { positionOf, RecentPosts } from '../../plugins/posts/recent-posts.ts'

/** Returns a post with this position. */
export const postAt = (position: number, { authorId = 'ada', content = '' } = {}): PostRow =>
  ({
    id: `post ${position}`,
    position: `${position}`,
    epoch: 1,
    authorId,
    title: `Post ${position}`,
    content,
    createdAt: new Date(0),
    rowVersion: '0',
  })

/** Posts in memory, in place of the table and of `plugins/posts/events.ts`. */
export class PostSource implements Source<PostRow> {
  readonly posts: PostRow[] = []
  readonly recent: RecentPosts<PostRow>
  /** How many of the next reads fail. */
  failures = 0
  readonly #streams = new Set<PostStream<PostRow>>()

  /** Creates a source whose memory has the posts after a position. */
  constructor (position = 0) {
    this.recent = new RecentPosts(position, 1)
  }

  /** Commits a post. Positions increase, and may leave gaps. */
  commit (post: PostRow): void {
    this.posts.push(post)
  }

  /** Removes a post from the table, but not from memory. */
  delete (position: number): void {
    const index = this.posts.findIndex((post) => positionOf(post) === position)
    if (index !== -1) this.posts.splice(index, 1)
  }

  /** Adds the posts that were committed since the last call to the memory, and wakes the streams. */
  announce (): void {
    this.recent.add(this.posts.filter((post) => positionOf(post) > this.recent.until))
    for (const stream of this.#streams) stream.wake()
  }

  async read (after: number, authorId: string | undefined): Promise<PostRow[]> {
    await turn()
    if (this.failures > 0) {
      this.failures--
      throw new Error('the table cannot be read')
    }
    return this.posts.filter((post) => positionOf(post) > after &&
      (authorId === undefined || post.authorId === authorId)).slice(0, POSTS_PER_PAGE)
  }

  async wait (): Promise<void> {
    await turn()
  }

  enter (stream: PostStream<PostRow>): void {
    this.#streams.add(stream)
  }

  leave (stream: PostStream<PostRow>): void {
    this.#streams.delete(stream)
  }
}
