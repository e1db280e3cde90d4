import type { PostRow } from '../../db/posts.ts'

const POSTS_KEPT = 1000
const CHARACTERS_KEPT = 8 * 1024 * 1024

/** The position of a post, as a number: 2^53 posts are more than there will be. */
export const positionOf = ({ position }: PostRow): number => Number(position)

/** The latest posts, without a gap: all that were committed after the position `from`, up to `until`. */
export class RecentPosts {
  from: number
  until: number
  /** The latest epoch of which it has posts, or in which it began. */
  epoch: number
  readonly #posts: PostRow[] = []
  #characters = 0

  constructor (position: number, epoch: number) {
    this.from = this.until = position
    this.epoch = epoch
  }

  /** Adds those that follow, in their order. The oldest go, beyond a bound. */
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

  /** Those after a position that is not before `from`. */
  after (position: number): PostRow[] {
    let index = this.#posts.length
    while (index > 0 && positionOf(this.#posts[index - 1]!) > position) index--
    return this.#posts.slice(index)
  }
}
