import { sql, type ExpressionBuilder } from 'kysely'
import { v7 as uuid } from 'uuid'
import { Overloaded, PostNotFound, UserNotFound } from '../schema/errors.ts'
import { again } from './batching.ts'
import { toPage, type Page } from './page.ts'
import { inOrder, isUuid, prepare } from './postgres.ts'
import type { Database, PostsTable, Row, Tables } from './tables.ts'
import { isInTime } from './driver/write-in-time.ts'

export type PostRow = Row<PostsTable, 'id' | 'position' | 'epoch' | 'author_id' | 'title' | 'content' | 'created_at'>

const columnOf = {
  position: 'position', epoch: 'epoch', authorId: 'author_id as authorId', title: 'title', content: 'content', createdAt: 'created_at as createdAt',
} as const
const columns = ['id', ...Object.values(columnOf)] as const

/** What lists of posts read when it is asked for, besides the id: a content may have 64 KiB. */
export type PostField = keyof typeof columnOf
export const postFields = Object.keys(columnOf) as readonly PostField[]

/** A post in a list: the other fields were not asked for. */
export type ListedPost = Pick<PostRow, 'id'> & Partial<PostRow>

function columnsOf (asked: ReadonlySet<string>) {
  return ['id' as const, ...postFields.filter((field) => asked.has(field)).map((field) => columnOf[field])]
}

// Whether a post's author was not deleted. PostgreSQL hashes the subquery once per statement, and nearly always it is
// empty; an anti-join would look into it once per post.
const visible = (query: ExpressionBuilder<Tables, 'posts'>) =>
  query('author_id', 'not in', query.selectFrom('deleted_users').select('user_id'))

const selectPosts = prepare((db, ids: readonly string[]) => db.selectFrom('posts').select(columns)
  .where('id', '=', sql<string>`any(${ids}::uuid[])`).where(visible))

/** The posts of some ids, in their order; `undefined` for an unknown id, whatever it looks like. */
export async function findPosts (db: Database, ids: readonly string[]): Promise<(PostRow | undefined)[]> {
  return inOrder(ids, await selectPosts(db, ids.filter(isUuid)))
}

export interface ListPostsQuery {
  fields: readonly PostField[]
  authorId?: string | undefined
  limit: number
  /** The position of the last post of the page before. */
  after?: string | undefined
}

/** A page of posts, newest first, by keyset. */
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
  /** A position. */
  after: string
  authorId?: string | undefined
  limit: number
}

/** The posts that were committed after a position, oldest first. */
export async function listPostsAfter (db: Database, { after, authorId, limit }: ListPostsAfterQuery): Promise<PostRow[]> {
  if (authorId !== undefined && !isUuid(authorId)) return []
  return db.selectFrom('posts').select(columns).where(visible)
    .$if(authorId !== undefined, (query) => query.where('author_id', '=', authorId!))
    .where('position', '>', after).orderBy('position').limit(limit)
    .execute()
}

/** The key of an author's newest posts, for a joined read: the author, how many, and which fields. */
export type AuthorPostsKey = `${string}:${number}:${string}`

export function authorPostsKey (authorId: string, first: number, fields: readonly PostField[]): AuthorPostsKey {
  return `${authorId}:${first}:${fields.join()}`
}

// By the fields that are read, of which there are few sets.
const selectsOfAuthors = new Map<string, ReturnType<typeof prepareSelectOfAuthors>>()

// What a statement reads of contents: they may be 64 KiB each, and a batch has up to 100,000 rows.
const BYTES_A_STATEMENT = 8 * 1024 * 1024

// PostgreSQL knows the size of a long text without reading it. The frame of the window ends with the last row of the author,
// so an author's contents are read all or not at all. Those of the first author are read in any case.
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
 * The newest posts of some authors, each with a number of their own, as one statement; with the fields that any of
 * the keys asks for. It does not look for deleted authors, because whoever asks has just read these. Authors whose contents
 * would be too many bytes for one statement are left to another one.
 */
export async function listPostsOfAuthors (db: Database, keys: readonly AuthorPostsKey[]): Promise<(ListedPost[] | typeof again)[]> {
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
  return left.size === 0 ? posts : posts.map((found, place) => left.has(place) ? again : found)
}

export interface NewPost {
  authorId: string
  title: string
  content: string
}

/**
 * Creates posts, as one statement; each for itself: `UserNotFound` in the place of one whose author is unknown. Their
 * positions are in this order, and nodes are told with the commit, unless it is to be `quiet`.
 *
 * The authors' rows are locked, so that nobody is deleted before the commit. `Overloaded` stands in the place of a post
 * whose author's row somebody else has locked, such as a deletion that may yet be rolled back: waiting would hold the lock
 * of `db/migrations/positions.ts`, for which every post waits, since PostgreSQL runs the trigger that takes it before any
 * other part of the statement.
 */
export async function insertPosts (db: Database, posts: readonly NewPost[], { quiet = false } = {}): Promise<(PostRow | Error)[]> {
  const ids = posts.map(() => uuid())
  const authors = posts.map(({ authorId }) => isUuid(authorId) ? authorId : null)
  const given = sql<{ id: string, author: string, title: string, content: string }>`unnest(
    ${ids}::uuid[], ${authors}::uuid[], ${posts.map(({ title }) => title)}::text[], ${posts.map(({ content }) => content)}::text[]
  )`.as<'given'>(sql`given(id, author, title, content)`)
  const rows = await db
    .with('authors', (cte) => cte.selectFrom('users').select('id')
      .where('id', '=', sql<string>`any(${authors}::uuid[])`).orderBy('id').forKeyShare().skipLocked())
    .insertInto('posts')
    .columns(['id', 'author_id', 'title', 'content'])
    .expression(({ selectFrom }) => selectFrom(given).innerJoin('authors', 'authors.id', 'given.author')
      // For this statement alone; true, whatever it is set to.
      .$if(quiet, (query) => query.where(sql<boolean>`(select set_config('usher.quiet', 'on', true)) is not null`))
      .select(['given.id', 'given.author', 'given.title', 'given.content']).orderBy('given.id'))
    .returning(columns)
    .execute()
  const created = inOrder(ids, rows)
  if (rows.length === posts.length) return created as PostRow[]
  const known = new Set((await findUserIds(db, authors)).map(({ id }) => id))
  const failureOf = (author: string | null | undefined) => known.has(author?.toLowerCase() ?? '') ? new Overloaded() : new UserNotFound()
  return created.map((row, index) => row ?? failureOf(authors[index]))
}

const findUserIds = prepare((db, ids: readonly (string | null)[]) => db.selectFrom('users').select('id')
  .where('id', '=', sql<string>`any(${ids}::uuid[])`))

/** Changes what is given of a post, with `until` of `isInTime`. Throws `PostNotFound`. */
export async function updatePost (db: Database, id: string, { title, content }: Partial<NewPost>, until: string): Promise<PostRow> {
  return db.updateTable('posts')
    .set({ ...title !== undefined && { title }, ...content !== undefined && { content }, updated_at: sql`now()` })
    .where('id', '=', id).where(isInTime(until))
    .returning(columns)
    .executeTakeFirstOrThrow(() => new PostNotFound())
}

/** Deletes a post, with `until` of `isInTime`. Throws `PostNotFound`. */
export async function deletePost (db: Database, id: string, until: string): Promise<void> {
  const { numDeletedRows } = await db.deleteFrom('posts').where('id', '=', id).where(isInTime(until)).executeTakeFirst()
  if (numDeletedRows === 0n) throw new PostNotFound()
}
