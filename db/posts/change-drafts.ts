import { sql, type SelectQueryBuilder } from 'kysely'
import { Overloaded, PreconditionFailed } from '../../schema/http/errors.ts'
import { PostNotFound } from '../../schema/posts/post.ts'
import { confirmSession, requireLiveSession } from '../access/live-sessions.ts'
import { keyedOf, withIdempotencyKeys } from '../idempotency/idempotency.ts'
import { actorValue, withEvents } from '../outbox/store.ts'
import type { Database, Tables } from '../tables/index.ts'
import { versionsOf } from '../users/preconditions.ts'
import { andQuiet, isChangeable, postData, writeOne, type NewPost, type PostConditions } from './change-posts.ts'
import { draftColumns, type DraftRow } from './drafts.ts'
import { postColumns, type PostRow } from './posts.ts'

/** Which draft is changed, and by whom. */
export interface DraftWriter extends Pick<NewPost, 'actorId' | 'token'> {
  id: string
  authorId: string
}

/**
 * Changes the members of a draft that are given. Throws `PreconditionFailed`, `InvalidToken` if the session has ended,
 * `KeyTaken` if the key `once` is taken, and `PostNotFound` if its author has no such draft any more.
 */
export async function updateDraft (
  db: Database, writer: DraftWriter, changes: Partial<Pick<DraftRow, 'title' | 'content' | 'publishAt'>>,
  conditions: PostConditions
): Promise<DraftRow> {
  const { title, content, publishAt } = changes
  const { id, authorId, token } = writer
  const keyed = keyedOf([id], [conditions.once])
  const query = (keyed ? withIdempotencyKeys(db, keyed) : db).with('updated', (cte) => cte.updateTable('post_drafts')
    .set({
      ...title !== undefined && { title },
      ...content !== undefined && { content },
      ...publishAt !== undefined && { publish_at: publishAt },
      updated_at: sql`now()`,
    })
    .where('author_id', '=', authorId).where(isChangeable('post_drafts', id, token, conditions))
    .returning(draftColumns))
  const draft = await writeOne<DraftRow>(db, query, {
    from: 'updated', kind: 'draft-update', keyed, condition: confirmSession(db, 'updated', token),
  })
  return draft ?? await whyUnchanged(db, writer, conditions)
}

/** Deletes a draft, of which nothing remains. Throws what `updateDraft` throws. */
export async function deleteDraft (db: Database, writer: DraftWriter, conditions: PostConditions): Promise<void> {
  const { id, authorId, token } = writer
  const keyed = keyedOf([id], [conditions.once])
  const query = (keyed ? withIdempotencyKeys(db, keyed) : db).with('deleted', (cte) => cte.deleteFrom('post_drafts')
    .where('author_id', '=', authorId).where(isChangeable('post_drafts', id, token, conditions))
    .returning(['id', 'author_id as authorId']))
  const deleted = await writeOne(db, query, {
    from: 'deleted', kind: 'post-deletion', keyed, condition: confirmSession(db, 'deleted', token), hasVersion: false,
  })
  if (!deleted) await whyUnchanged(db, writer, conditions)
}

/**
 * Publishes a draft, as one statement: it becomes a post that is created now, with the members that are given. Throws
 * what `updateDraft` throws, and `Overloaded` if another transaction has locked the draft or its author, because
 * waiting for it would block all new posts (`insertPosts`).
 * @param quiet suppresses the notification, for nodes that announce posts through an emitter
 */
export async function publishDraft (
  db: Database, writer: DraftWriter, given: Partial<Pick<NewPost, 'title' | 'content'>>, conditions: PostConditions,
  { quiet = false } = {}
): Promise<PostRow> {
  const { id, authorId, actorId = null, token } = writer
  const keyed = keyedOf([id], [conditions.once])
  const query = publish(keyed ? withIdempotencyKeys(db, keyed) : db, db, {
    choose: (drafts) => drafts.where('author_id', '=', authorId)
      .where(isChangeable('post_drafts', id, token, conditions)),
    given,
    actor: actorValue(actorId),
    quiet,
  })
  const post = await writeOne<PostRow>(db, query, {
    from: 'created', kind: 'post-update', keyed, condition: confirmSession(db, 'created', token),
  })
  return post ?? await whyUnchanged(db, writer, conditions)
}

/**
 * Publishes at most `limit` drafts whose time has come, in the order of these times, as one statement. Returns the
 * number. Leaves out those that another transaction has locked, such as the one of another node, and those of disabled
 * users.
 */
export async function publishDueDrafts (db: Database, limit: number, quiet: boolean): Promise<number> {
  const rows = await publish(db, db, {
    choose: (drafts) => drafts.where('publish_at', '<=', sql<Date>`now()`)
      .orderBy('publish_at').orderBy('post_drafts.id').limit(limit),
    given: {},
    actor: 'created."authorId"',
    quiet,
  }).selectFrom('created').select('created.id').execute()
  return rows.length
}

// Kysely has no clause for more than one lock. That of the author keeps out deletions and every other change of the
// author's row, such as disabling.
const lockWithAuthor = sql`for update of post_drafts skip locked for share of users skip locked`

interface Publication {
  /** Chooses the drafts. */
  choose (drafts: SelectQueryBuilder<Tables, 'post_drafts' | 'users', { id: string }>): SelectQueryBuilder<
    Tables, 'post_drafts' | 'users', { id: string }
  >
  given: Partial<Pick<NewPost, 'title' | 'content'>>
  /** SQL of the id of who publishes them. */
  actor: Parameters<typeof postData>[2]
  quiet: boolean
}

/**
 * Adds to a statement that it publishes drafts, which become the rows `created`. It takes the lock of positions first,
 * as the insertion of any post does, and then waits for no other lock. The author is locked so that none who is being
 * deleted or disabled publishes.
 */
function publish (query: Database, db: Database, { choose, given, actor, quiet }: Publication) {
  const { title = null, content = null } = given
  const statement = query
    .with('due', (cte) => choose(
      cte.selectFrom('post_drafts').innerJoin('users', 'users.id', 'post_drafts.author_id').select('post_drafts.id')
    ).where('disabled', '=', false).modifyEnd(lockWithAuthor))
    .with('gone', (cte) => cte.deleteFrom('post_drafts').using('due').whereRef('post_drafts.id', '=', 'due.id')
      .returning([
        'post_drafts.id', 'post_drafts.author_id', 'post_drafts.title', 'post_drafts.content', 'post_drafts.publish_at',
      ]))
    .with('created', (cte) => cte.insertInto('posts').columns(['id', 'author_id', 'title', 'content'])
      .expression(sql`select id, author_id, coalesce(${title}::text, title), coalesce(${content}::text, content)
        from gone where true ${quiet ? andQuiet : sql``} order by publish_at, id`)
      .returning(postColumns))
  return withEvents(statement, db, 'post.created', {
    from: 'created', ...postData('created', 'created."authorId"', actor),
  })
}

/**
 * Locks a draft until the transaction ends, and returns it as it is; undefined if its author has no such draft, or
 * another transaction has locked it. Lock the author first.
 */
export async function lockDraft (
  trx: Database, { id, authorId }: Pick<DraftWriter, 'id' | 'authorId'>
): Promise<DraftRow | undefined> {
  return trx.selectFrom('post_drafts').select(draftColumns).where('id', '=', id).where('author_id', '=', authorId)
    .forUpdate().skipLocked().executeTakeFirst()
}

/** Takes the time from at most `limit` drafts of disabled users whose time has come. */
export async function cancelDraftsOfDisabled (db: Database, limit: number): Promise<void> {
  await db.with('due', (cte) => cte.selectFrom('post_drafts')
    .innerJoin('users', 'users.id', 'post_drafts.author_id').select('post_drafts.id')
    .where('publish_at', '<=', sql<Date>`now()`).where('disabled', '=', true)
    .orderBy('publish_at').limit(limit).forUpdate('post_drafts').skipLocked())
    .updateTable('post_drafts').from('due').whereRef('post_drafts.id', '=', 'due.id').set({ publish_at: null })
    .execute()
}

/** Takes the time from a draft that has not changed since it was read. */
export async function cancelDraft (
  db: Database, { id, rowVersion }: Pick<DraftRow, 'id' | 'rowVersion'>
): Promise<void> {
  await db.updateTable('post_drafts').set({ publish_at: null })
    .where('id', '=', id).where('row_version', '=', rowVersion).execute()
}

// Throws why a change has matched no row.
async function whyUnchanged (
  db: Database, { id, authorId, token }: DraftWriter, { match }: PostConditions
): Promise<never> {
  await requireLiveSession(db, token)
  const draft = await db.selectFrom('post_drafts').select('row_version')
    .where('id', '=', id).where('author_id', '=', authorId).executeTakeFirst()
  if (!draft) throw new PostNotFound()
  throw versionsOf(match)?.includes(draft.row_version) === false ? new PreconditionFailed() : new Overloaded()
}
