import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { connect } from '../db/connection.ts'
import { joinReads } from '../db/join-reads.ts'
import { migrate } from '../db/migrations.ts'
import { findPosts, listPostsOfAuthors, type AuthorPostsKey } from '../db/posts.ts'
import { findLiveSessions } from '../db/sessions.ts'
import { findUsers } from '../db/users.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherDatabase: Awaited<ReturnType<typeof createDatabase>>
  }
}

async function createDatabase (app: FastifyInstance) {
  const { database, schema, poolSize } = app.usherOptions
  const { db, gate, notifications, close } = connect({ database, schema, poolSize })
  app.addHook('onClose', close)
  await migrate(db, schema)

  return {
    db,
    gate,
    notifications,
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
  app.addHook('onReady', () => app.usherDatabase.notifications.start())
}, { name: 'usher-database' })
