import { sql, type ExpressionBuilder } from 'kysely'
import { postponed } from './batching.ts'
import { toPage, type Page } from './page.ts'
import { inOrder, isUuid, prepare } from './postgres.ts'
import type { Row } from './row.ts'
import type { Database, Tables } from './tables.ts'
import type { PostsTable } from './tables/content.ts'

export type PostRow = Row<PostsTable, 'id' | 'position' | 'epoch' | 'author_id' | 'title' | 'content' | 'created_at' | 'row_version'>

const columnOf = {
  position: 'position',
  epoch: 'epoch',
  authorId: 'author_id as authorId',
  title: 'title',
  content: 'content',
  createdAt: 'created_at as createdAt',
  rowVersion: 'row_version as rowVersion',
} as const
/** The columns of a post. */
export const postColumns = ['id', ...Object.values(columnOf)] as const

/** A field that a list of posts reads only on request, because a content may be large. The id is always read. */
export type PostField = keyof typeof columnOf
export const postFields = Object.keys(columnOf) as readonly PostField[]

/** A post in a list, with the requested fields. */
export type ListedPost = Pick<PostRow, 'id'> & Partial<PostRow>

function columnsOf (fields: ReadonlySet<string>) {
  return ['id' as const, ...postFields.filter((field) => fields.has(field)).map((field) => columnOf[field])]
}

// The condition that a post's author was not deleted. PostgreSQL hashes the subquery, which is nearly always empty, once per
// statement. An anti-join would look it up once per post.
const visible = (query: ExpressionBuilder<Tables, 'posts'>) =>
  query('author_id', 'not in', query.selectFrom('deleted_users').select('user_id'))

const selectPosts = prepare((db, ids: readonly string[]) => db.selectFrom('posts').select(postColumns)
  .where('id', '=', sql<string>`any(${ids}::uuid[])`).where(visible))

/** Returns the posts with these ids, in the same order. An id that is unknown or malformed yields `undefined`. */
export async function findPosts (db: Database, ids: readonly string[]): Promise<(PostRow | undefined)[]> {
  return inOrder(ids, await selectPosts(db, ids.filter(isUuid)))
}

export interface ListPostsQuery {
  fields: readonly PostField[]
  authorId?: string | undefined
  limit: number
  /** The position of the last post of the previous page. */
  after?: string | undefined
}

/** Returns a page of posts, newest first, by keyset. */
export async function listPosts (db: Database, { fields, authorId, limit, after }: ListPostsQuery): Promise<Page<ListedPost>> {
  if (authorId !== undefined && !isUuid(authorId)) return { rows: [], next: null }
  const rows = await db.selectFrom('posts').select(columnsOf(new Set(fields))).where(visible)
    .$if(authorId !== undefined, (query) => query.where('author_id', '=', authorId!))
    .$if(after !== undefined, (query) => query.where('position', '<', after!))
    .orderBy('position', 'desc').limit(limit + 1)
    .execute()
  return toPage(rows, limit)
}

export interface ListPostsAfterQuery {
  /** The position after which posts are listed. */
  after: string
  authorId?: string | undefined
  limit: number
}

/** Returns at most `limit` posts that follow a position in commit order, oldest first. */
export async function listPostsAfter (db: Database, { after, authorId, limit }: ListPostsAfterQuery): Promise<PostRow[]> {
  if (authorId !== undefined && !isUuid(authorId)) return []
  return db.selectFrom('posts').select(postColumns).where(visible)
    .$if(authorId !== undefined, (query) => query.where('author_id', '=', authorId!))
    .where('position', '>', after).orderBy('position').limit(limit)
    .execute()
}

/** The key of an author's newest posts in a batch: the author's id, the number of posts and their fields. */
export type AuthorPostsKey = `${string}:${number}:${string}`

/** Returns the key to read the `first` newest posts of an author with. */
export function authorPostsKey (authorId: string, first: number, fields: readonly PostField[]): AuthorPostsKey {
  return `${authorId}:${first}:${fields.join()}`
}

// Prepared queries by the fields that they read. There are few combinations of fields.
const selectsOfAuthors = new Map<string, ReturnType<typeof prepareSelectOfAuthors>>()

/** The limit for the contents that one statement reads. A batch may have up to 100,000 rows. */
export const BYTES_A_STATEMENT = 8 * 1024 * 1024

// Limits the bytes of contents. PostgreSQL knows the size of a long text without reading it. The frame of the window ends with the
// last row of an author, so either all contents of an author are read or none. Those of the first author are always read.
const limitedContent = sql<string>`case
  when asked.place = 0 or sum(octet_length(post.content)) over (order by asked.place) <= ${sql.lit(BYTES_A_STATEMENT)} then post.content
end`

function prepareSelectOfAuthors (fields: ReadonlySet<string>) {
  const others = ['id' as const, ...postFields.filter((field) => fields.has(field) && field !== 'content')]
  return prepare((db, places: readonly number[], authors: readonly string[], firsts: readonly string[]) => db
    .selectFrom(sql<{ place: number, author: string, first: number }>`unnest(
      ${places}::int[], ${authors}::uuid[], ${firsts}::int[]
    )`.as<'asked'>(sql`asked(place, author, first)`))
    .innerJoinLateral((lateral) => lateral.selectFrom('posts').select(columnsOf(fields))
      .whereRef('author_id', '=', 'asked.author').orderBy('position', 'desc')
      .limit(sql<number>`asked.first`).as('post'), (join) => join.onTrue())
    .select(others.map((field) => `post.${field}` as const)).select('asked.place')
    .$if(fields.has('content'), (query) => query.select(limitedContent.as('content'))))
}

/**
 * Returns the newest posts of several authors, as one statement. Each key has its own number of posts; the fields are those that
 * any of the keys requests. It does not check whether an author is deleted, because callers have just read the authors. An author
 * whose contents exceed the size limit of a statement gets `postponed`, and is read by a later one.
 */
export async function listPostsOfAuthors (db: Database, keys: readonly AuthorPostsKey[]): Promise<(ListedPost[] | typeof postponed)[]> {
  const asked = keys.map((key) => key.split(':') as [string, string, string])
  const fields = new Set([...new Set(asked.map(([,, fields]) => fields))].join().split(','))
  const name = postFields.filter((field) => fields.has(field)).join()
  const select = selectsOfAuthors.get(name) ?? prepareSelectOfAuthors(fields)
  selectsOfAuthors.set(name, select)
  const rows = await select(db, keys.map((_, place) => place), asked.map(([author]) => author), asked.map(([,first]) => first))
  const posts: ListedPost[][] = keys.map(() => [])
  const left = new Set<number>()
  for (const row of rows) {
    posts[row.place]!.push(row)
    if (row.content === null) left.add(row.place)
  }
  return left.size === 0 ? posts : posts.map((found, place) => left.has(place) ? postponed : found)
}
