import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { Overloaded } from '../schema/errors.ts'
import { PostNotFound } from '../schema/post.ts'
import { UserNotFound } from '../schema/user.ts'
import { isInTime } from './driver/write-in-time.ts'
import { actorValue, storing } from './outbox/store.ts'
import { inOrder, isUuid, prepare } from './postgres.ts'
import { postColumns, type PostRow } from './posts.ts'
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

/** Updates the title, the content or both. `until` is that of `isInTime`. Throws `PostNotFound`. */
export async function updatePost (db: Database, id: string, { title, content, actorId = null }: Partial<NewPost>, until: string): Promise<PostRow> {
  const statement = db.with('updated', (cte) => cte.updateTable('posts')
    .set({ ...title !== undefined && { title }, ...content !== undefined && { content }, updated_at: sql`now()` })
    .where('id', '=', id).where(isInTime(until))
    .returning(postColumns))
  return storing(statement, db, 'post.updated', { from: 'updated', ...postData('updated', 'updated."authorId"', actorValue(actorId)) })
    .selectFrom('updated').selectAll().executeTakeFirstOrThrow(() => new PostNotFound())
}

/** Deletes a post. `until` is that of `isInTime`, and `actorId` the user who deletes it. Throws `PostNotFound`. */
export async function deletePost (db: Database, id: string, until: string, actorId: string | null): Promise<void> {
  const statement = db.with('deleted', (cte) => cte.deleteFrom('posts').where('id', '=', id).where(isInTime(until)).returning(['id', 'author_id', 'title']))
  await storing(statement, db, 'post.deleted', { from: 'deleted', ...postData('deleted', 'deleted.author_id', actorValue(actorId)) })
    .selectFrom('deleted').select('id').executeTakeFirstOrThrow(() => new PostNotFound())
}
