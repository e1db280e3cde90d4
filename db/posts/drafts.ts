import { sql } from 'kysely'
import { arrayOf, isUuid, prepare } from '../driver/postgres.ts'
import type { Page } from '../tables/page.ts'
import type { Database } from '../tables/index.ts'
import type { PostDraftsTable } from '../tables/posts.ts'
import type { ListedPost } from './posts.ts'
import type { Row } from '../tables/row.ts'

/** A post that is not published (contract 22.4). Only its author may see it. */
export type DraftRow =
  Row<PostDraftsTable, 'id' | 'author_id' | 'title' | 'content' | 'publish_at' | 'created_at' | 'row_version'>

/** The columns of a draft. */
export const draftColumns = [
  'id', 'author_id as authorId', 'title', 'content', 'publish_at as publishAt', 'created_at as createdAt',
  'row_version as rowVersion',
] as const

/** Takes the times from the drafts of a user, because somebody else may have planned them. They stay drafts. */
export async function cancelPlansOf (trx: Database, userId: string): Promise<void> {
  await trx.updateTable('post_drafts').set({ publish_at: null })
    .where('author_id', '=', userId).where('publish_at', 'is not', null).execute()
}

/** A draft, or a post of which a list has read some fields. */
export type AnyPost = ListedPost | DraftRow

/** Returns whether a post is a draft. */
export const isDraft = (post: AnyPost): post is DraftRow => 'publishAt' in post

/** A draft and who reads it. Nobody else's read shares its result. */
export type DraftKey = `${string} ${string}`

/** Returns the key to read a draft of an author with. */
export const draftKey = (authorId: string, id: string): DraftKey => `${authorId} ${id.toLowerCase()}`

const selectDrafts = prepare((db, { authors, ids }: { authors: string, ids: string }) => db
  .selectFrom(sql<{ author: string, draft: string }>`unnest(${authors}::uuid[], ${ids}::uuid[])`
    .as<'asked'>(sql`asked(author, draft)`))
  .innerJoin('post_drafts', (join) =>
    join.onRef('post_drafts.id', '=', 'asked.draft').onRef('author_id', '=', 'asked.author'))
  .select(draftColumns))

/** Returns the draft of each key, in the same order: `undefined` if the author has none with that id. */
export async function findDrafts (db: Database, keys: readonly DraftKey[]): Promise<(DraftRow | undefined)[]> {
  const asked = keys.map((key) => key.split(' ') as [string, string]).filter((ids) => ids.every(isUuid))
  const rows = await selectDrafts(db, {
    authors: arrayOf(asked.map(([author]) => author)), ids: arrayOf(asked.map(([, id]) => id)),
  })
  const byKey = new Map(rows.map((row) => [draftKey(row.authorId, row.id), row]))
  return keys.map((key) => byKey.get(key))
}

export interface ListDraftsQuery {
  authorId: string
  limit: number
  /** The id of the last draft of the previous page. */
  after?: string | undefined
}

/**
 * Returns a page of the drafts of a user, newest first, by keyset. One with more than `maxBytes` of content has fewer
 * drafts, but at least one.
 */
export async function listDrafts (
  db: Database, { authorId, limit, after }: ListDraftsQuery, maxBytes: number
): Promise<Page<DraftRow>> {
  const drafts = db.selectFrom('post_drafts').select(draftColumns).where('author_id', '=', authorId)
    .$if(after !== undefined, (query) => query.where('id', '<', after!))
    .orderBy('id', 'desc').limit(limit + 1)
  // PostgreSQL knows the size of a long text without reading it.
  const sized = db.selectFrom(drafts.as('draft')).selectAll('draft').select([
    sql<number>`sum(octet_length(content)) over (order by id desc)`.as('bytes'),
    sql<number>`row_number() over (order by id desc)::integer`.as('place'),
    sql<number>`count(*) over ()::integer`.as('found'),
  ])
  const rows = await db.selectFrom(sized.as('draft')).selectAll()
    .where(({ or, eb }) => or([eb('bytes', '<=', maxBytes), eb('place', '=', 1)])).where('place', '<=', limit)
    .orderBy('id', 'desc').execute()
  const last = rows.at(-1)
  return {
    rows: rows.map(({ bytes, place, found, ...draft }) => draft),
    next: last && last.found > last.place ? last.id : null,
  }
}

/** A draft whose time has come. */
export type DueDraft = Pick<DraftRow, 'id' | 'authorId'>

/** Returns at most `limit` drafts whose time has come, in the order in which they are to be published. */
export async function listDueDrafts (db: Database, limit: number): Promise<DueDraft[]> {
  return db.selectFrom('post_drafts').select(['id', 'author_id as authorId'])
    .where('publish_at', '<=', sql<Date>`now()`).orderBy('publish_at').orderBy('id').limit(limit).execute()
}
