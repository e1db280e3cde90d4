import type { PostRow } from '../../db/posts/posts.ts'

const POSTS_KEPT = 1000
const CHARACTERS_KEPT = 8 * 1024 * 1024

/** Returns the position of a post as a number. There will never be 2^53 posts. */
export const positionOf = ({ position }: PostRow): number => Number(position)

/** The latest posts without a gap: all that have positions after `from`, up to `until`. */
export class RecentPosts {
  from: number
  until: number
  /** The epoch of the last post that was added, or the epoch at the start if there is none. */
  epoch: number
  readonly #posts: PostRow[] = []
  #characters = 0

  constructor (position: number, epoch: number) {
    this.from = this.until = position
    this.epoch = epoch
  }

  /** Adds the posts that follow, in order. Drops the oldest posts beyond 1,000 posts or 8 Mi characters of content. */
  add (posts: readonly PostRow[]): void {
    for (const post of posts) {
      this.#posts.push(post)
      this.#characters += post.content.length
      this.until = positionOf(post)
      this.epoch = post.epoch
    }
    while (this.#posts.length > POSTS_KEPT || this.#characters > CHARACTERS_KEPT) {
      const oldest = this.#posts.shift()!
      this.#characters -= oldest.content.length
      this.from = positionOf(oldest)
    }
  }

  /** Returns the posts after a position, which must not be before `from`. */
  after (position: number): PostRow[] {
    let index = this.#posts.length
    while (index > 0 && positionOf(this.#posts[index - 1]!) > position) index--
    return this.#posts.slice(index)
  }
}
