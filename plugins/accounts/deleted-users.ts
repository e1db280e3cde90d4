import { setTimeout as delay } from 'node:timers/promises'
import { purgeDeletedUsers } from '../../db/users/deleted-users.ts'
import { isConsequence } from '../../db/driver/circuit-breaker.ts'
import type { Core } from '../core.ts'
import { purgeRegularly, PURGE_BATCH_SIZE } from '../support/purge.ts'

// This interval matters for purges that a stopped node has left unfinished, and for users who were deleted by SQL.
const PURGE_SECONDS = 30

export type DeletedUsers = ReturnType<typeof createDeletedUsers>

interface Dependencies extends Core {
  /**
   * Removes the files of deleted uploads. A mount without uploads has none; the next start with uploads removes the
   * files.
   */
  sweep: (() => Promise<void>) | undefined
}

/** Deletes the rows and files of deleted users, in batches. */
export function createDeletedUsers ({ lifecycle, database: { db }, options: { deadlines }, sweep }: Dependencies) {
  const { log } = lifecycle
  const continueNow = purgeRegularly(lifecycle, 'deleted users', PURGE_SECONDS, async () => {
    const { more, uploads } = await purgeDeletedUsers(db, PURGE_BATCH_SIZE)
    if (uploads > 0) await sweep?.()
    return more ? PURGE_BATCH_SIZE : 0
  })

  const running = new Set<Promise<void>>()
  // The database closes next.
  lifecycle.addHook('onClose', async () => { await Promise.all(running) })

  return {
    /**
     * Deletes the rows and files of users who were just deleted: one batch now, unless it takes long, and the rest in
     * the background. Never throws: these rows and files are not visible any more, and failures are logged and tried
     * again.
     */
    async purge (): Promise<void> {
      // The rows may be locked.
      const done = purgeBatch().finally(() => running.delete(done))
      running.add(done)
      await Promise.race([done, delay(deadlines.userPurge, undefined, { ref: false })])
    },
  }

  async function purgeBatch (): Promise<void> {
    try {
      const { more } = await purgeDeletedUsers(db, PURGE_BATCH_SIZE)
      if (more) continueNow()
    } catch (err) {
      log[isConsequence(err) ? 'debug' : 'error']({ err }, 'The rows of deleted users could not be deleted')
    }
    await sweep?.()
  }
}
