import { batchCalls, batchLists, type Client } from '../../db/batching/batching.ts'
import {
  cancelDraft, cancelDraftsOfDisabled, deleteDraft, lockDraft, publishDraft, publishDueDrafts, updateDraft,
  type DraftWriter,
} from '../../db/posts/change-drafts.ts'
import { insertDraft, type NewPost, type PostConditions } from '../../db/posts/change-posts.ts'
import {
  draftKey, findDrafts, listDrafts, listDueDrafts, type DraftKey, type DraftRow, type ListDraftsQuery,
} from '../../db/posts/drafts.ts'
import type { PostRow } from '../../db/posts/posts.ts'
import { lockAuthor } from '../../db/users/locked-users.ts'
import type { Database } from '../../db/tables/index.ts'
import { TooManyPosts } from '../../schema/posts/post.ts'
import type { Caller } from '../access/caller.ts'
import type { Core } from '../core.ts'
import type { RecentRejections } from '../support/recent-rejections.ts'
import { actorOf } from './writer.ts'

/** The most content of a page of drafts, in bytes. */
const MAX_BYTES_PER_PAGE = 4 * 1024 * 1024
/** How many drafts one statement publishes. While it runs, no other post is created. */
export const MAX_DRAFTS_PER_STATEMENT = 100

/** A draft that is to be created. */
export type NewDraft = NewPost & { publishAt: Date | null }

/** What a draft becomes. */
export type DraftChanges = Partial<Pick<DraftRow, 'title' | 'content' | 'publishAt'>>

type Conditions = Omit<PostConditions, 'until'>

/** A draft of an author. */
export type DraftId = Pick<DraftRow, 'id' | 'authorId'>

interface Dependencies extends Core {
  rejections: RecentRejections
  /** Tells other nodes that there is a new post. */
  announce (): void
}

export type Drafts = ReturnType<typeof createDrafts>

/** Reads and writes drafts of posts (contract 22.4). */
export function createDrafts ({
  database: { db, reads, writeInTime }, telemetry: { batch }, options: { emitter, postsPerHour: perHour, deadlines },
  rejections, announce,
}: Dependencies) {
  const timeoutMs = deadlines.batch
  const quiet = emitter !== undefined
  const create = batchCalls(
    async ([draft]: NewDraft[]) => [await insertDraft(db, draft!, { perHour }).catch((error: Error) => error)],
    { size: 1, timeoutMs, telemetry: batch('drafts.create') }
  )
  const read = batchCalls(
    (keys: DraftKey[]) => findDrafts(reads, keys), { timeoutMs, telemetry: batch('drafts.read') }
  )
  const writerOf = (caller: Caller, { id, authorId }: DraftId): DraftWriter => ({ id, authorId, ...actorOf(caller) })

  return {
    /** Returns the draft of an author with an id, or undefined if there is none. */
    read: (authorId: string, id: string, client?: Client) => read(draftKey(authorId, id), client),

    /** Returns a page of the drafts of a user, newest first. One with more than 4 MiB of content has fewer. */
    list: batchLists(
      (query: ListDraftsQuery) => listDrafts(reads, query, MAX_BYTES_PER_PAGE),
      { timeoutMs, telemetry: batch('drafts.list') }
    ),

    /**
     * Creates a draft. Throws `UserNotFound`, `Overloaded`, `TooManyPosts`, `TooManyDrafts`, `KeyTaken`, or
     * `InvalidToken` if the client may no longer act.
     */
    async create (draft: NewDraft, client: Client): Promise<DraftRow> {
      if (draft.actorId != null) rejections.throwIfRejected(draft.actorId)
      try {
        return await create(draft, client)
      } catch (error) {
        if (error instanceof TooManyPosts && draft.actorId != null) rejections.record(draft.actorId, error)
        throw error
      }
    },

    /**
     * Changes the members that are given. Throws `PostNotFound` if the author has no such draft any more,
     * `PreconditionFailed`, `KeyTaken`, and `InvalidToken` if the session of the actor has ended.
     */
    update: (caller: Caller, draft: DraftId, changes: DraftChanges, conditions: Conditions): Promise<DraftRow> =>
      writeInTime((until) => updateDraft(db, writerOf(caller, draft), changes, { ...conditions, until }), caller),

    /** Deletes a draft. Throws the errors of `update`. */
    delete: (caller: Caller, draft: DraftId, conditions: Conditions): Promise<void> =>
      writeInTime((until) => deleteDraft(db, writerOf(caller, draft), { ...conditions, until }), caller),

    /** Publishes a draft with the members that are given. Throws the errors of `update`, and `Overloaded`. */
    async publish (
      caller: Caller, draft: DraftId, given: Omit<DraftChanges, 'publishAt'>, conditions: Conditions
    ): Promise<PostRow> {
      const post = await writeInTime(
        (until) => publishDraft(db, writerOf(caller, draft), given, { ...conditions, until }, { quiet }), caller
      )
      announce()
      return post
    },

    /**
     * Does the same in a transaction of its own, for a draft that has not changed since it was read. Throws also the
     * errors of `beforeInsert`, which runs in the transaction before the insertion.
     */
    async publishAfter (
      caller: Caller, draft: DraftRow, given: Omit<DraftChanges, 'publishAt'>, { once }: Pick<Conditions, 'once'>,
      beforeInsert: (trx: Database, createdAt: Date) => Promise<void>
    ): Promise<PostRow> {
      const post = await db.transaction().execute(async (trx) => {
        const createdAt = await lockAuthor(trx, draft.authorId)
        // So that no other node runs the hook for the same draft meanwhile.
        const locked = await lockDraft(trx, draft)
        if (locked?.rowVersion === draft.rowVersion) await beforeInsert(trx, createdAt)
        const conditions = { match: [draft.rowVersion], once, until: 'infinity' }
        return publishDraft(trx, writerOf(caller, draft), given, conditions, { quiet })
      })
      announce()
      return post
    },

    /** Returns drafts whose time has come, in the order in which they are to be published. */
    listDue: () => listDueDrafts(db, MAX_DRAFTS_PER_STATEMENT),

    /** Publishes drafts whose time has come, in the order of these times. Returns how many. */
    async publishDue (): Promise<number> {
      const count = await publishDueDrafts(db, MAX_DRAFTS_PER_STATEMENT, quiet)
      if (count > 0) announce()
      return count
    },

    /** Takes the time from drafts of disabled users whose time has come. */
    cancelOfDisabled: () => cancelDraftsOfDisabled(db, MAX_DRAFTS_PER_STATEMENT),

    /** Takes the time from a draft that has not changed since it was read. */
    cancel: (draft: DraftRow) => cancelDraft(db, draft),
  }
}
