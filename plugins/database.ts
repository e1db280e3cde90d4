import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { channelOf } from '../db/driver/channel.ts'
import { openDatabase } from '../db/driver/connection.ts'
import { isOutage } from '../db/driver/circuit-breaker.ts'
import { batchCalls, type Client } from '../db/batching.ts'
import type { Failure } from '../db/driver/sockets.ts'
import { migrate } from '../db/migrations.ts'
import { findPosts, insertPosts, listPosts, listPostsOfAuthors, type AuthorPostsKey, type NewPost } from '../db/posts.ts'
import { findLiveTokens, type TokenKey } from '../db/live-tokens.ts'
import type { Database } from '../db/tables.ts'
import { findUsers, insertUsers, listUsers } from '../db/users.ts'
import { createWriteInTime } from '../db/driver/write-in-time.ts'
import { DatabaseUnavailable } from '../schema/errors.ts'

const LISTS_IN_FLIGHT = 4
// A post may have 64 KiB, so fewer posts than other rows fit into one statement or result.
const ROWS_A_WRITE = 100
const POSTS_A_READ = 128

declare module 'fastify' {
  interface FastifyInstance {
    usherDatabase: Awaited<ReturnType<typeof createDatabase>>
  }
}

async function createDatabase (app: FastifyInstance) {
  const { database, notificationsUrl, schema, poolSize, emitter } = app.usherOptions
  const connection = openDatabase({ database, notificationsUrl, schema, poolSize, log: app.log })
  const { db, breaker, clock, notifications, heartbeat, close } = connection
  app.addHook('onClose', close)
  await migrate(db, schema).catch(giveUp)

  // If the app does not start, an open connection would keep the process alive.
  async function giveUp (error: Error): Promise<never> {
    await close()
    const cause = (error.cause ?? error) as Failure
    if (!isOutage(cause)) throw cause
    throw Object.assign(new DatabaseUnavailable({ cause }), { message: `usher: the database cannot be reached (${cause.code})` })
  }

  /** Starts listening to notifications. Throws if the database or `notificationsUrl` cannot be used. */
  async function start (): Promise<void> {
    await heartbeat?.start().catch(giveUp)
    await notifications.start().catch(async (error: Error) => {
      const isExplained = error instanceof DatabaseUnavailable || error.message.startsWith('usher: ')
      if (notificationsUrl === undefined || isExplained) return giveUp(error)
      await close()
      throw new Error(`usher: notificationsUrl cannot be used to receive notifications: ${error.message}`, { cause: error })
    })
  }

  async function createPosts (posts: NewPost[]) {
    const rows = await insertPosts(db, posts, { quiet: emitter !== undefined })
    emitter?.emit({ topic: channelOf(schema, 'post_created') }, (err) => {
      if (err) app.log.warn({ err }, 'New posts could not be announced to other nodes')
    })
    return rows
  }

  return {
    db,
    breaker,
    clock,
    notifications,
    start,
    /**
     * Reads that concurrent requests share (docs/speed.md, point 2). Each takes the client that it is for, and is not sent
     * if that client has disconnected by then.
     */
    read: {
      user: batchCalls((ids: string[]) => findUsers(db, ids)),
      users: batchLists(db, listUsers),
      post: batchCalls((ids: string[]) => findPosts(db, ids), { size: POSTS_A_READ }),
      posts: batchLists(db, listPosts),
      postsOfAuthor: batchCalls((keys: AuthorPostsKey[]) => listPostsOfAuthors(db, keys)),
      liveToken: batchCalls((keys: TokenKey[]) => findLiveTokens(db, keys)),
    },
    /** Writes that are sent in batches (docs/speed.md, point 3). Each has its own result, after the commit. */
    write: {
      user: batchCalls((users: Parameters<typeof insertUsers>[1][number][]) => insertUsers(db, users), { size: ROWS_A_WRITE }),
      post: batchCalls(createPosts, { size: ROWS_A_WRITE }),
    },
    writeInTime: createWriteInTime(clock),
  }
}

// Each statement reads one list, which all concurrent requests for the same list share.
function batchLists<Query, Page> (db: Database, list: (db: Database, query: Query) => Promise<Page>) {
  const run = async ([query]: string[]) => [await list(db, JSON.parse(query!) as Query)]
  const read = batchCalls(run, { size: 1, inFlight: LISTS_IN_FLIGHT })
  return (query: Query, client?: Client): Promise<Page> => read(JSON.stringify(query), client)
}

/** Connects to the database, migrates it, and closes the connections when the app closes. */
export default fp(async function database (app) {
  app.decorate('usherDatabase', await createDatabase(app))
  // Every plugin has registered its channels by then.
  app.addHook('onReady', () => app.usherDatabase.start())
}, { name: 'usher-database' })
