import { SLOW_LISTS_IN_FLIGHT, batchCalls, type Client } from '../../db/batching/batching.ts'
import { channelOf } from '../../db/driver/channel.ts'
import { deletePost, insertPosts, updatePost, type NewPost, type PostConditions } from '../../db/posts/change-posts.ts'
import type { DraftRow } from '../../db/posts/drafts.ts'
import type { PostRow } from '../../db/posts/posts.ts'
import { forgetDeletions } from '../../db/posts/followed.ts'
import { deleteOldRates } from '../../db/posts/rates.ts'
import { lockAuthor } from '../../db/users/locked-users.ts'
import type { Database } from '../../db/tables/index.ts'
import { TooManyPosts } from '../../schema/posts/post.ts'
import type { Caller } from '../access/caller.ts'
import type { Core } from '../core.ts'
import { createRecentRejections } from '../support/recent-rejections.ts'
import { purgeRegularly, PURGE_BATCH_SIZE } from '../support/purge.ts'
import { createDrafts } from './drafts.ts'
import { findUnpublished } from './find-post.ts'
import { keepPostIndex } from './post-index.ts'
import { createPostReads } from './post-reads.ts'
import { actorOf } from './writer.ts'

// Posts may be large, so fewer of them than other rows fit into one statement.
const MAX_POSTS_PER_WRITE = 100
const PURGE_SECONDS = 600

export type PostRecords = ReturnType<typeof createPosts>

/** Reads and writes posts, with statements that concurrent requests share (docs/speed.md, points 2 and 3). */
export function createPosts (core: Core) {
  const { lifecycle, database: { db, reads, newId, writeInTime }, telemetry: { batch }, options } = core
  const { schema, emitter, postsPerHour: perHour, deadlines } = options
  purgeRegularly(lifecycle, 'deletions of posts', PURGE_SECONDS, () => forgetDeletions(db, PURGE_BATCH_SIZE))
  purgeRegularly(lifecycle, 'numbers of posts in past hours', PURGE_SECONDS, () => deleteOldRates(db, PURGE_BATCH_SIZE))
  const wakeIndex = keepPostIndex(core)
  // A client that does not stop costs one statement a second rather than one for each post.
  const rejections = createRecentRejections({ Rejection: TooManyPosts, after: 1, maxMs: 1000 })

  async function create (posts: NewPost[]): Promise<(PostRow | Error)[]> {
    const rows = await insertPosts(db, posts, { quiet: emitter !== undefined, perHour })
    announce()
    rows.forEach((row, index) => { if (row instanceof TooManyPosts) rejections.record(posts[index]!.actorId!, row) })
    return rows
  }

  const createInBatch = batchCalls(
    create, { size: MAX_POSTS_PER_WRITE, timeoutMs: deadlines.batch, telemetry: batch('posts.create') }
  )

  function announce (): void {
    wakeIndex()
    emitter?.emit({ topic: channelOf(schema, 'post_created') }, (err) => {
      if (err) lifecycle.log.warn({ err }, 'New posts could not be announced to other nodes')
    })
  }

  const drafts = createDrafts({ ...core, rejections, announce })
  const usual = createPostReads(reads, { batch, deadlines })

  return {
    ...usual,
    drafts,

    /** Returns a post, or a draft of the caller; undefined if the id is unknown or malformed. */
    async find (caller: Pick<Caller, 'actor' | 'client'>, id: string): Promise<PostRow | DraftRow | undefined> {
      return await usual.read(id, caller.client) ?? findUnpublished(usual.read, drafts, caller, id)
    },

    /**
     * The same reads for costly operations, whose statements may take long: other reads neither wait for them nor share
     * them.
     */
    costly: createPostReads(reads, { batch, deadlines, listsInFlight: SLOW_LISTS_IN_FLIGHT }),
    /**
     * Creates a post. Resolves after the commit. Rejects with `UserNotFound`, `Overloaded` or `TooManyPosts`, or with
     * `InvalidToken` if the client may no longer act.
     */
    async create (post: NewPost, client?: Client): Promise<PostRow> {
      if (post.actorId != null) rejections.throwIfRejected(post.actorId)
      return createInBatch(post, client)
    },

    /**
     * Creates a post in a transaction of its own. Throws `UserNotFound`, `Overloaded`, `TooManyPosts`, and the errors
     * of `beforeInsert`.
     * @param beforeInsert runs in the transaction before the insertion, from which on every other new post waits for
     * the transaction
     */
    async createAfter (
      post: NewPost, beforeInsert: (trx: Database, id: string, createdAt: Date) => Promise<void>
    ): Promise<PostRow> {
      const created = await db.transaction().execute(async (trx) => {
        const id = newId()
        await beforeInsert(trx, id, await lockAuthor(trx, post.authorId))
        const [row] = await insertPosts(trx, [{ ...post, id }], { quiet: emitter !== undefined, perHour })
        if (row instanceof Error) throw row
        return row!
      })
      announce()
      return created
    },

    /**
     * Changes the title, the content or both. Throws `PostNotFound`, `PreconditionFailed`, `KeyTaken`, and
     * `InvalidToken` if the session of the actor has ended.
     */
    async update (
      caller: Caller, id: string, changes: Partial<NewPost>, conditions?: Omit<PostConditions, 'until'>
    ): Promise<PostRow> {
      const given = { ...changes, ...actorOf(caller) }
      const post = await writeInTime((until) => updatePost(db, id, given, { ...conditions, until }), caller)
      announce()
      return post
    },

    /** Deletes a post. Throws the errors of `update`. */
    async delete (caller: Caller, id: string, conditions?: Omit<PostConditions, 'until'>): Promise<void> {
      await writeInTime((until) => deletePost(db, id, actorOf(caller), { ...conditions, until }), caller)
      announce()
    },
  }
}
