import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { purgeDeletedUsers } from '../../db/deleted-users.ts'
import { isConsequence } from '../../db/driver/circuit-breaker.ts'
import { purgeRegularly, ROWS_A_PURGE } from '../support/purge.ts'

// This interval matters for purges that a stopped node has left unfinished, and for users who were deleted by SQL.
const PURGE_SECONDS = 30

declare module 'fastify' {
  interface FastifyInstance {
    usherDeletedUsers: ReturnType<typeof createDeletedUsers>
  }
}

function createDeletedUsers (app: FastifyInstance) {
  const { log, usherDatabase: { db }, usherOptions: { deadlines } } = app
  const continueNow = purgeRegularly(app, 'deleted users', PURGE_SECONDS, async () => {
    const { more, uploads } = await purgeDeletedUsers(db, ROWS_A_PURGE)
    if (uploads > 0) await sweep()
    return more ? ROWS_A_PURGE : 0
  })

  const running = new Set<Promise<void>>()
  // The database closes next.
  app.addHook('onClose', async () => { await Promise.all(running) })

  // A mount without uploads has no storage. The next start with uploads removes the files.
  async function sweep (): Promise<void> {
    if (app.hasDecorator('usherStorage')) await app.usherStorage.sweep()
  }

  return {
    /**
     * Deletes the rows and files of users who were just deleted: one batch now, unless it takes long, and the rest in the background.
     * Never throws: these rows and files are not visible any more, and failures are logged and tried again.
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
      const { more } = await purgeDeletedUsers(db, ROWS_A_PURGE)
      if (more) continueNow()
    } catch (err) {
      log[isConsequence(err) ? 'debug' : 'error']({ err }, 'The rows of deleted users could not be deleted')
    }
    await sweep()
  }
}

/** Deletes the rows and files of deleted users, in batches. */
export default fp(async function deletedUsers (app) {
  app.decorate('usherDeletedUsers', createDeletedUsers(app))
}, { name: 'usher-deleted-users', dependencies: ['usher-database'] })
