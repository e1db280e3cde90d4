import { indexPosts, MAX_EVENTS } from '../../db/posts/index-posts.ts'
import { isConsequence } from '../../db/driver/circuit-breaker.ts'
import type { Core } from '../core.ts'

// Posts that are written within this time are indexed together. A search looks at those that are not indexed yet.
const GATHER_MS = 100
// Posts that another node, psql or an older version has written may have nobody else who indexes them.
const POLL_SECONDS = 10

/**
 * Keeps the index of searches (contract 22.3) up to date in the background, so that writers do not wait for it. Returns
 * a function that tells of posts that this node has written.
 */
export function keepPostIndex ({ lifecycle, database: { db } }: Pick<Core, 'lifecycle' | 'database'>): () => void {
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let isWoken = false
  let isClosing = false
  // A statement that fails, for example because a busy server cancels it, is followed by one with half as much.
  let limit = MAX_EVENTS

  async function run (): Promise<void> {
    isWoken = false
    const isComplete = await fill().catch((err: unknown) => {
      lifecycle.log[isConsequence(err) ? 'debug' : 'warn']({ err }, 'Posts could not be indexed for searches')
      return true
    })
    running = undefined
    if (!isClosing) runIn(isComplete && !isWoken ? POLL_SECONDS * 1000 * (0.5 + Math.random()) : GATHER_MS)
  }

  // Returns whether nothing is left to do. While another node indexes, it may have missed the last posts of this one.
  async function fill (): Promise<boolean> {
    for (;;) {
      const { events, isBusy } = await indexPosts(db, limit).catch((error: unknown) => {
        limit = Math.ceil(limit / 2)
        throw error
      })
      limit = Math.min(2 * limit, MAX_EVENTS)
      if (events === 0 || isClosing) return !isBusy
    }
  }

  function runIn (milliseconds: number): void {
    clearTimeout(timer)
    timer = setTimeout(() => { running = run() }, milliseconds).unref()
  }

  function wake (): void {
    if (isWoken || isClosing) return
    isWoken = true
    if (!running) runIn(GATHER_MS)
  }

  lifecycle.addHook('onReady', async () => { wake() })
  lifecycle.addHook('onClose', async () => {
    isClosing = true
    clearTimeout(timer)
    await running
  })
  return wake
}
