import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { Match } from '../schema/entity-tag.ts'
import { Overloaded, PreconditionFailed } from '../schema/errors.ts'
import { PostNotFound } from '../schema/post.ts'
import { UserNotFound } from '../schema/user.ts'
import { isInTime } from './driver/write-in-time.ts'
import { actorValue, storing } from './outbox/store.ts'
import { inOrder, isUuid, prepare } from './postgres.ts'
import { postColumns, type PostRow } from './posts.ts'
import { hasVersion, versionsOf } from './preconditions.ts'
import type { Database } from './tables.ts'

/**
 * Returns where a statement finds the events of the posts that it changes.
 * @param row the rows with the `id` and the `title` of each post
 * @param author the column with the id of its author
 */
export function postData (row: string, author: string, actor: string | ReturnType<typeof actorValue>) {
  return { subject: `${row}.id`, data: { postId: `${row}.id`, authorId: author, title: `${row}.title`, actorId: actor } }
}

export interface NewPost {
  /** A UUIDv7. By default a new one. */
  id?: string
  authorId: string
  title: string
  content: string
  /** The user who creates or changes it. Null, or absent, if it is not a user. */
  actorId?: string | null | undefined
}

/**
 * Creates posts, as one statement. Returns the created posts in the order of their positions, which is the order of `posts`. A post
 * whose author is unknown yields `UserNotFound` and does not affect the others. PostgreSQL notifies the nodes at the commit.
 *
 * The authors' rows are locked, so that no author is deleted before the commit. If another transaction has locked an author's row,
 * such as a deletion that may still be rolled back, the post yields `Overloaded`. Waiting for that row would block all new posts:
 * PostgreSQL first runs the trigger that takes the lock of `db/migrations/positions.ts`, and every insert waits for that lock.
 *
 * @param quiet suppresses the notification, for nodes that announce posts through an emitter
 */
export async function insertPosts (db: Database, posts: readonly NewPost[], { quiet = false } = {}): Promise<(PostRow | Error)[]> {
  const ids = posts.map(({ id }) => id ?? uuid())
  const authors = posts.map(({ authorId }) => isUuid(authorId) ? authorId : null)
  const actors = posts.map(({ actorId = null }) => actorId)
  const statement = db
    .with('given', (cte) => cte.selectFrom(sql<Record<'id' | 'author' | 'title' | 'content' | 'actor', string>>`unnest(
      ${ids}::uuid[], ${authors}::uuid[], ${posts.map(({ title }) => title)}::text[], ${posts.map(({ content }) => content)}::text[], ${actors}::uuid[]
    )`.as<'posts'>(sql`posts(id, author, title, content, actor)`)).selectAll())
    .with('authors', (cte) => cte.selectFrom('users').select('id')
      .where('id', '=', sql<string>`any(${authors}::uuid[])`).orderBy('id').forKeyShare().skipLocked())
    .with('created', (cte) => cte.insertInto('posts')
      .columns(['id', 'author_id', 'title', 'content'])
      .expression(({ selectFrom }) => selectFrom('given').innerJoin('authors', 'authors.id', 'given.author')
        // The condition is always true. It sets `usher.quiet` for this statement only.
        .$if(quiet, (query) => query.where(sql<boolean>`(select set_config('usher.quiet', 'on', true)) is not null`))
        .select(['given.id', 'given.author', 'given.title', 'given.content']).orderBy('given.id'))
      .returning(postColumns))
  const from = 'created inner join given on given.id = created.id'
  const rows = await storing(statement, db, 'post.created', { from, ...postData('created', 'given.author', 'given.actor') })
    .selectFrom('created').selectAll().execute()
  const created = inOrder(ids, rows)
  if (rows.length === posts.length) return created as PostRow[]
  const known = new Set((await findUserIds(db, authors)).map(({ id }) => id))
  const failureOf = (author: string | null | undefined) => known.has(author?.toLowerCase() ?? '') ? new Overloaded() : new UserNotFound()
  return created.map((row, index) => row ?? failureOf(authors[index]))
}

const findUserIds = prepare((db, ids: readonly (string | null)[]) => db.selectFrom('users').select('id')
  .where('id', '=', sql<string>`any(${ids}::uuid[])`))

/** The conditions of a change of a post. */
export interface PostConditions {
  /** That of `isInTime`. */
  until: string
  /** The versions that the post may have. */
  match?: Match
}

/** Updates the title, the content or both. Throws `PostNotFound`, `PreconditionFailed`. */
export async function updatePost (
  db: Database, id: string, { title, content, actorId = null }: Partial<NewPost>, { until, match }: PostConditions
): Promise<PostRow> {
  const versions = versionsOf(match)
  const statement = db.with('updated', (cte) => cte.updateTable('posts')
    .set({ ...title !== undefined && { title }, ...content !== undefined && { content }, updated_at: sql`now()` })
    .where('id', '=', id).where(isInTime(until))
    .$if(versions !== null, (query) => query.where(hasVersion(sql.ref('row_version'), sql`${versions}`)))
    .returning(postColumns))
  const [row] = await storing(statement, db, 'post.updated', { from: 'updated', ...postData('updated', 'updated."authorId"', actorValue(actorId)) })
    .selectFrom('updated').selectAll().execute()
  if (!row) throw await whyUnchanged(db, id, match)
  return row
}

/**
 * Deletes a post. Throws `PostNotFound`, `PreconditionFailed`.
 * @param actorId the user who deletes it
 */
export async function deletePost (db: Database, id: string, actorId: string | null, { until, match }: PostConditions): Promise<void> {
  const versions = versionsOf(match)
  const statement = db.with('deleted', (cte) => cte.deleteFrom('posts').where('id', '=', id).where(isInTime(until))
    .$if(versions !== null, (query) => query.where(hasVersion(sql.ref('row_version'), sql`${versions}`)))
    .returning(['id', 'author_id', 'title']))
  const [row] = await storing(statement, db, 'post.deleted', { from: 'deleted', ...postData('deleted', 'deleted.author_id', actorValue(actorId)) })
    .selectFrom('deleted').select('id').execute()
  if (!row) throw await whyUnchanged(db, id, match)
}

// Returns why a change has matched no row.
async function whyUnchanged (db: Database, id: string, match: Match): Promise<Error> {
  if (versionsOf(match) === null) return new PostNotFound()
  const post = await db.selectFrom('posts').select('id').where('id', '=', id).executeTakeFirst()
  return post ? new PreconditionFailed() : new PostNotFound()
}
