import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { createEvents, type PostEvents } from './events.ts'
import { createPostChanges, type PostChanges } from './post-changes.ts'
import { publishPlanned } from './planned.ts'
import { createPosts, type PostRecords } from './posts.ts'
import { createReadPosts, type PostReads } from './read-posts.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherPosts: Posts
  }
}

export interface Posts {
  readonly records: PostRecords
  /** The reads that the policy permits. */
  readonly reads: PostReads
  /**
   * The same reads for costly operations, whose statements may take long: other reads neither wait for them nor share
   * them.
   */
  readonly costlyReads: PostReads
  /** The changes that the policy permits. */
  readonly changes: PostChanges
  /** New posts, for subscriptions and event streams. */
  readonly events: PostEvents
}

/** Posts, and their delivery to subscribers (contract 7). */
export default fp(async function posts (app) {
  const {
    usherIdempotency: idempotency, usherUsers: { records: users }, usherAccess: access, usherHooks: hooks,
  } = app
  const core = coreOf(app)
  const records = createPosts(core)
  const changes = createPostChanges({ clock: core.database.clock, records, users, hooks, idempotency })
  publishPlanned({ ...core, records, changes, hooks, createHostCaller: access.createHostCaller })
  app.decorate('usherPosts', {
    records,
    reads: createReadPosts(records, records.drafts),
    costlyReads: createReadPosts(records.costly, records.drafts),
    changes,
    events: createEvents({ ...core, access }),
  })
}, {
  name: 'usher-posts',
  dependencies: [
    'usher-options', 'usher-telemetry', 'usher-database', 'usher-idempotency', 'usher-users', 'usher-access',
    'usher-hooks',
  ],
})
