import { TooManyPosts } from '../../schema/posts/post.ts'

const FOR_MS = 1000
const REMEMBERED = 10_000

/**
 * Remembers for a second which users may not post, so that a client that does not stop costs one statement a second rather than one for
 * each post.
 */
export function createRecentExcess () {
  const known = new Map<string, { error: TooManyPosts, until: number }>()

  return {
    /** Throws `TooManyPosts` if the user may not post now. */
    require (userId: string | null | undefined): void {
      if (known.size === 0 || userId == null) return
      const found = known.get(userId)
      if (!found) return
      if (found.until > performance.now()) throw new TooManyPosts(found.error.retryAfter)
      known.delete(userId)
    },

    /** Remembers that the posts of a user were rejected. */
    add (userId: string, error: TooManyPosts): void {
      const until = performance.now() + Math.min(FOR_MS, error.retryAfter * 1000)
      known.set(userId, { error, until })
      if (known.size > REMEMBERED) known.delete(known.keys().next().value!)
    },
  }
}
