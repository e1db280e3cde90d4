import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { connect } from '../db/connection.ts'
import { isOutage } from '../db/gate.ts'
import { joinReads } from '../db/join-reads.ts'
import type { Failure } from '../db/sockets.ts'
import { migrate } from '../db/migrations.ts'
import { findPosts, listPostsOfAuthors, type AuthorPostsKey } from '../db/posts.ts'
import { findLiveSessions } from '../db/sessions.ts'
import { findUsers } from '../db/users.ts'
import { DatabaseUnavailable } from '../schema/errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherDatabase: Awaited<ReturnType<typeof createDatabase>>
  }
}

async function createDatabase (app: FastifyInstance) {
  const { database, schema, poolSize } = app.usherOptions
  const { db, gate, notifications, close } = connect({ database, schema, poolSize, log: app.log })
  app.addHook('onClose', close)
  await migrate(db, schema).catch(giveUp)

  // An app that does not start leaves no connection open, which would keep the process alive.
  async function giveUp (error: Error): Promise<never> {
    await close()
    const cause = (error.cause ?? error) as Failure
    if (!isOutage(cause)) throw cause
    throw Object.assign(new DatabaseUnavailable({ cause }), { message: `usher: the database cannot be reached (${cause.code})` })
  }

  return {
    db,
    gate,
    notifications,
    /** Begins to hear notifications. Throws where the database cannot be reached. */
    start: () => notifications.start().catch(giveUp),
    /** Reads that concurrent requests share (SPEED, point 2). */
    read: {
      user: joinReads((ids) => findUsers(db, ids)),
      post: joinReads((ids) => findPosts(db, ids)),
      postsOfAuthor: joinReads((keys: AuthorPostsKey[]) => listPostsOfAuthors(db, keys)),
      liveSession: joinReads((ids) => findLiveSessions(db, ids)),
    },
  }
}

/** The database: connected, migrated, and closed with the app. */
export default fp(async function database (app) {
  app.decorate('usherDatabase', await createDatabase(app))
  // Last, when every plugin has said what it listens to.
  app.addHook('onReady', () => app.usherDatabase.start())
}, { name: 'usher-database' })
