import { indexPosts, MAX_EVENTS } from '../../db/posts/index-posts.ts'
import type { Core } from '../core.ts'
import { repeatRegularly } from '../support/repeat.ts'

// Posts that are written within this time are indexed together. A search looks at those that are not indexed yet.
const GATHER_MS = 100
// Posts that another node, psql or an older version has written may have nobody else who indexes them.
const POLL_SECONDS = 10

/**
 * Keeps the index of searches (contract 22.3) up to date in the background, so that writers do not wait for it. Returns
 * a function that tells of posts that this node has written.
 */
export function keepPostIndex ({ lifecycle, database: { db } }: Pick<Core, 'lifecycle' | 'database'>): () => void {
  // A statement that fails, for example because a busy server cancels it, is followed by one with half as much.
  let limit = MAX_EVENTS
  let gathering: NodeJS.Timeout | undefined

  const failure = 'Posts could not be indexed for searches'
  const start = repeatRegularly(lifecycle, { seconds: POLL_SECONDS, failure }, async () => {
    const { events, isBusy } = await indexPosts(db, limit).catch((error: unknown) => {
      limit = Math.ceil(limit / 2)
      throw error
    })
    limit = Math.min(2 * limit, MAX_EVENTS)
    // The other node that indexes at this moment may have missed the last posts of this one.
    if (isBusy) wake()
    return events > 0
  })

  function wake (): void {
    gathering ??= setTimeout(() => {
      gathering = undefined
      start()
    }, GATHER_MS).unref()
  }

  return wake
}
