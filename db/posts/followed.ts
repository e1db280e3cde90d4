import { sql } from 'kysely'
import { isUuid } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import type { Database } from '../tables/index.ts'
import { postColumns, visible, type PostRow } from './posts.ts'

/** A post that was created, changed or deleted, at the position of that event. */
export interface ChangedPost {
  kind: 'created' | 'updated' | 'deleted'
  /** The position of the event. */
  position: string
  /** The epoch of the event. */
  epoch: number
  id: string
  authorId: string
  /** The post as it is now; null if it is deleted. */
  post: PostRow | null
}

export interface ListAfterQuery {
  /** The position after which events are listed. */
  after: string
  authorId?: string | undefined
  limit: number
}

/** Returns at most `limit` posts that follow a position in commit order, oldest first. */
export async function listPostsAfter (
  db: Database, { after, authorId, limit }: ListAfterQuery
): Promise<PostRow[]> {
  if (authorId !== undefined && !isUuid(authorId)) return []
  return db.selectFrom('posts').select(postColumns).where(visible)
    .$if(authorId !== undefined, (query) => query.where('author_id', '=', authorId!))
    .where('position', '>', after).orderBy('position').limit(limit)
    .execute()
}

/**
 * Returns at most `limit` changes of posts that follow a position in commit order, oldest first. Of several changes of
 * a post, there is the last one. A post that was deleted since has only its deletion.
 */
export async function listChangesAfter (
  db: Database, { after, authorId, limit }: ListAfterQuery
): Promise<ChangedPost[]> {
  if (authorId !== undefined && !isUuid(authorId)) return []
  const posts = db.selectFrom('posts').select(postColumns).where(visible)
    .$if(authorId !== undefined, (query) => query.where('author_id', '=', authorId!))
  const created = posts.select([kindOf('created'), 'position as at', 'epoch as atEpoch'])
    .where('position', '>', after).orderBy('position').limit(limit)
  const updated = posts.select(({ ref }) => [
    kindOf('updated'), ref('change_position').$notNull().as('at'), ref('change_epoch').$notNull().as('atEpoch'),
  ]).where('change_position', '>', after).orderBy('change_position').limit(limit)
  const deleted = db.selectFrom('post_deletions')
    .select(({ ref }) => [
      ref('post_id').$notNull().as('id'), sql<string>`0`.as('position'), sql<number>`0`.as('epoch'),
      ref('author_id').$notNull().as('authorId'), sql<string>`''`.as('title'), sql<string>`''`.as('content'),
      'deleted_at as createdAt', sql<string>`0`.as('rowVersion'),
      kindOf('deleted'), 'position as at', 'epoch as atEpoch',
    ])
    .where('post_id', 'is not', null)
    .$if(authorId !== undefined, (query) => query.where('author_id', '=', authorId!))
    .where('position', '>', after).orderBy('position').limit(limit)
  const rows = await db.selectFrom(
    db.selectFrom(created.as('created')).selectAll()
      .unionAll(db.selectFrom(updated.as('updated')).selectAll())
      .unionAll(db.selectFrom(deleted.as('deleted')).selectAll()).as('change')
  ).selectAll().orderBy('at').limit(limit).execute()
  return rows.map(({ kind, at, atEpoch, ...post }) => ({
    kind, position: at, epoch: atEpoch, id: post.id, authorId: post.authorId, post: kind === 'deleted' ? null : post,
  }))
}

const kindOf = (kind: ChangedPost['kind']) => sql<ChangedPost['kind']>`${sql.lit(kind)}::text`.as('kind')

/** For how many days deletions are known. */
export const DAYS_OF_DELETIONS = 30

/**
 * Deletes about `limit` deletions of posts that are older than 30 days. What remains of them is the position up to
 * which deletions are not known any more. Returns how many there were.
 */
export async function forgetDeletions (db: Database, limit: number): Promise<number> {
  const { count } = await replanned(db)
    .with('old', (cte) => cte.selectFrom('post_deletions').select('position').where('post_id', 'is not', null)
      .where('deleted_at', '<', sql<Date>`now() - make_interval(days => ${sql.lit(DAYS_OF_DELETIONS)})`)
      // The index of searches has to learn of them.
      .where('position', '<=', ({ selectFrom }) => selectFrom('indexed_posts').select('position'))
      .orderBy('deleted_at').limit(limit))
    .with('last', (cte) => cte.selectFrom('old').select(({ fn }) => fn.max('position').as('position')))
    .with('gone', (cte) => cte.deleteFrom('post_deletions').using('last')
      .whereRef('post_deletions.position', '<', 'last.position'))
    .with('kept', (cte) => cte.updateTable('post_deletions').from('last').set({ post_id: null, author_id: null })
      .whereRef('post_deletions.position', '=', 'last.position'))
    .selectFrom('old').select(({ fn }) => fn.countAll<string>().as('count')).executeTakeFirstOrThrow()
  return Number(count)
}
