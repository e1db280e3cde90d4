import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { channelOf } from '../db/driver/channel.ts'
import { openDatabase } from '../db/driver/connection.ts'
import { isOutage } from '../db/driver/circuit-breaker.ts'
import { batchCalls, type Client } from '../db/batching.ts'
import type { Failure } from '../db/driver/sockets.ts'
import { migrate } from '../db/migrations.ts'
import { findPosts, insertPosts, listPosts, listPostsOfAuthors, type AuthorPostsKey, type NewPost } from '../db/posts.ts'
import { findLiveSessions } from '../db/sessions.ts'
import { findSigningKeys } from '../db/signing-keys.ts'
import type { Database } from '../db/tables.ts'
import { findUsers, insertUsers, listUsers } from '../db/users.ts'
import { createWriteInTime } from '../db/driver/write-in-time.ts'
import { DatabaseUnavailable } from '../schema/errors.ts'

const LISTS_IN_FLIGHT = 4
// A post may have 64 KiB.
const ROWS_A_WRITE = 100
const POSTS_A_READ = 128

declare module 'fastify' {
  interface FastifyInstance {
    usherDatabase: Awaited<ReturnType<typeof createDatabase>>
  }
}

async function createDatabase (app: FastifyInstance) {
  const { database, notificationsUrl, schema, poolSize, emitter } = app.usherOptions
  const { db, breaker, clock, notifications, heartbeat, close } = openDatabase({ database, notificationsUrl, schema, poolSize, log: app.log })
  app.addHook('onClose', close)
  await migrate(db, schema).catch(giveUp)

  // An app that does not start leaves no connection open, which would keep the process alive.
  async function giveUp (error: Error): Promise<never> {
    await close()
    const cause = (error.cause ?? error) as Failure
    if (!isOutage(cause)) throw cause
    throw Object.assign(new DatabaseUnavailable({ cause }), { message: `usher: the database cannot be reached (${cause.code})` })
  }

  /** Begins to hear notifications. Throws where the database cannot be reached. */
  async function start (): Promise<void> {
    await heartbeat?.start().catch(giveUp)
    await notifications.start().catch(async (error: Error) => {
      if (notificationsUrl === undefined || error instanceof DatabaseUnavailable || error.message.startsWith('usher: ')) return giveUp(error)
      await close()
      throw new Error(`usher: notificationsUrl cannot be listened to: ${error.message}`, { cause: error })
    })
  }

  async function createPosts (posts: NewPost[]) {
    const rows = await insertPosts(db, posts, { quiet: emitter !== undefined })
    emitter?.emit({ topic: channelOf(schema, 'post_created') }, (err) => { if (err) app.log.warn({ err }, 'new posts could not be told to other nodes') })
    return rows
  }

  return {
    db,
    breaker,
    clock,
    notifications,
    start,
    /** Reads that concurrent requests share (SPEED, point 2); each takes the client it is for, which may go. */
    read: {
      user: batchCalls((ids: string[]) => findUsers(db, ids)),
      users: batchLists(db, listUsers),
      post: batchCalls((ids: string[]) => findPosts(db, ids), { size: POSTS_A_READ }),
      posts: batchLists(db, listPosts),
      postsOfAuthor: batchCalls((keys: AuthorPostsKey[]) => listPostsOfAuthors(db, keys)),
      liveSession: batchCalls((ids: string[]) => findLiveSessions(db, ids)),
      signingKey: batchCalls((ids: string[]) => findSigningKeys(db, ids)),
    },
    /** Writes that go out together; each is answered for itself, after the commit (SPEED, point 3). */
    write: {
      user: batchCalls((users: Parameters<typeof insertUsers>[1][number][]) => insertUsers(db, users), { size: ROWS_A_WRITE }),
      post: batchCalls(createPosts, { size: ROWS_A_WRITE }),
    },
    writeInTime: createWriteInTime(clock),
  }
}

// A statement answers one list, for all who wait for the same.
function batchLists<Query, Page> (db: Database, list: (db: Database, query: Query) => Promise<Page>) {
  const read = batchCalls(async ([query]: string[]) => [await list(db, JSON.parse(query!) as Query)], { size: 1, inFlight: LISTS_IN_FLIGHT })
  return (query: Query, client?: Client): Promise<Page> => read(JSON.stringify(query), client)
}

/** The database: connected, migrated, and closed with the app. */
export default fp(async function database (app) {
  app.decorate('usherDatabase', await createDatabase(app))
  // Last, when every plugin has said what it listens to.
  app.addHook('onReady', () => app.usherDatabase.start())
}, { name: 'usher-database' })
