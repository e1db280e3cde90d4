import { sql, type Compilable, type ExpressionBuilder, type RawBuilder, type SelectQueryBuilder } from 'kysely'
import { LAST_POSITION, type Place } from '../../schema/http/cursor.ts'
import { arrayOf, inOrder, isUuid, prepare } from '../driver/postgres.ts'
import type { Row } from '../tables/row.ts'
import type { Database, Tables } from '../tables/index.ts'
import type { PostsTable } from '../tables/posts.ts'

export type PostRow =
  Row<PostsTable, 'id' | 'position' | 'epoch' | 'author_id' | 'title' | 'content' | 'created_at' | 'row_version'>

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

/**
 * A post in a list, with the requested fields. If the list has more than 64 KiB of contents, or its statement more than
 * 1 MiB, `content` is null, and must be read afterwards.
 */
export type ListedPost = Pick<PostRow, 'id'> & Partial<Omit<PostRow, 'content'>> & {
  readonly content?: string | null
  /** The size of the content in bytes, if it was requested. */
  readonly contentBytes?: number
}

function columnsOf (fields: ReadonlySet<string>) {
  return ['id' as const, ...postFields.filter((field) => fields.has(field)).map((field) => columnOf[field])]
}

// The members of a post in a list. `content` is an expression for its content, or null.
function membersOf (fields: ReadonlySet<string>, content?: RawBuilder<string | null>) {
  const requested = postFields.filter((field) => fields.has(field))
  return ['id' as const, ...requested.map((field) => field === 'content' ? content!.as(field) : field)]
}

/** The condition that a post's author was not deleted. */
// PostgreSQL hashes the subquery, which is nearly always empty, once per statement. An anti-join would look it up once
// per post.
export const visible = (query: ExpressionBuilder<Tables, 'posts'>) =>
  query('author_id', 'not in', query.selectFrom('deleted_users').select('user_id'))

const selectPosts = prepare((db, { ids }: { ids: string }) => db.selectFrom('posts').select(postColumns)
  .where('id', '=', sql<string>`any(${ids}::uuid[])`).where(visible))

/** Returns the posts with these ids, in the same order. An id that is unknown or malformed yields `undefined`. */
export async function findPosts (db: Database, ids: readonly string[]): Promise<(PostRow | undefined)[]> {
  return inOrder(ids, await selectPosts(db, { ids: arrayOf(ids.filter(isUuid)) }))
}

export interface ListPostsQuery {
  fields: readonly PostField[]
  authorId?: string | undefined
  /** Only posts that were created at this time or later. */
  since?: string | undefined
  /** By default the newest posts come first. */
  isOldestFirst?: boolean | undefined
  limit: number
  /** The position of the last post of the previous page. */
  after?: string | undefined
}

// The most contents that a list and a statement read along with the posts, in bytes. Larger ones are read only when it
// is known that the response has room for them.
const MAX_BYTES_PER_LIST = 64 * 1024
/** The most contents that one statement reads for lists, in bytes, unless a single one is larger. */
export const MAX_BYTES_PER_STATEMENT = 1024 * 1024

// PostgreSQL knows the size of a long text without reading it.
const contentBytes = sql<number>`octet_length(content)`.as('contentBytes')

const contentOfShortList =
  sql<string | null>`case when sum("contentBytes") over () <= ${sql.lit(MAX_BYTES_PER_LIST)} then content end`

/** A page of posts. Do not modify it, because several requests may share it. */
export interface ListedPage {
  /** The place of each is read in any case. */
  readonly rows: readonly ListedPost[]
  /** The place after which the next page begins; null if there is none. */
  readonly next: Place | null
}

type PostOrder = 'asc' | 'desc'

/** Returns a page of posts in commit order, by default newest first, by keyset. */
export async function listPosts (
  db: Database, { fields, authorId, since, isOldestFirst = false, limit, after }: ListPostsQuery
): Promise<ListedPage> {
  if (authorId !== undefined && !isUuid(authorId)) return { rows: [], next: null }
  const direction = isOldestFirst ? 'asc' : 'desc'
  const page = db.selectFrom('posts').where(visible)
    .$if(authorId !== undefined, (query) => query.where('author_id', '=', authorId!))
    .$if(since !== undefined, (query) => query.where('created_at', '>=', sql<Date>`${since!}::timestamptz`)
      .where('position', '>=', firstPositionSince(db, since!)))
    .$if(after !== undefined, (query) => query.where('position', isOldestFirst ? '>' : '<', after!))
    .limit(limit + 1)
  const rows = await readListed(db, page, fields, direction)
  return rows.length > limit ? { rows: rows.slice(0, limit), next: placeOf(rows[limit - 1]!) } : { rows, next: null }
}

/** Returns those of these posts that exist, as a list has them. */
export async function listPostsById (
  db: Database, ids: readonly string[], fields: readonly PostField[], isOldestFirst = false
): Promise<ListedPost[]> {
  const posts = db.selectFrom('posts').where(visible).where('id', '=', sql<string>`any(${arrayOf(ids)}::uuid[])`)
  return readListed(db, posts, fields, isOldestFirst ? 'asc' : 'desc')
}

async function readListed (
  db: Database, from: SelectQueryBuilder<Tables, 'posts', object>, fields: readonly PostField[], order: PostOrder
): Promise<ListedPost[]> {
  const requested = new Set<string>([...fields, 'position', 'epoch'])
  const page = from.select(columnsOf(requested)).orderBy('position', order)
  if (!requested.has('content')) return page.execute()
  return db.selectFrom(page.select(contentBytes).as('post'))
    .select([...membersOf(requested, contentOfShortList), 'contentBytes']).orderBy('position', order).execute()
}

const placeOf = ({ position, epoch }: ListedPost): Place => ({ position: position!, epoch: epoch! })

// How many of the first posts since a time are looked at for the lowest position. They are in the order in which their
// transactions began, and positions in that in which these took the lock (`post_ordered` in `db/migrations/0001.ts`).
const POSTS_OUT_OF_ORDER = 1000

/** Returns the position from which posts were created at a time or later, so that a list reads only what it needs. */
export const firstPositionSince = (db: Database, since: string) => sql<string>`coalesce((
  select min(position) from ${db.selectFrom('posts').select('position').where('created_at', '>=', sql<Date>`${since}::timestamptz`)
    .orderBy('created_at').orderBy('position').limit(POSTS_OUT_OF_ORDER)} as first), ${sql.lit(LAST_POSITION)})`

/** A page of whole posts. Do not modify it, because several requests may share it. */
export interface PostPage {
  readonly rows: readonly PostRow[]
  /** The place of the last post if another page follows, otherwise null. */
  readonly next: Place | null
}

/**
 * Returns a page of whole posts for one of all fields. One with more content than `maxBytes` has fewer posts, but at
 * least one.
 */
export async function toWholePosts (
  db: Database, { rows: listed, next }: ListedPage, maxBytes: number
): Promise<PostPage> {
  let bytes = 0
  const fitting = listed.filter(({ contentBytes }, index) => (bytes += contentBytes!) <= maxBytes || index === 0)
  const isComplete = (post: ListedPost): post is PostRow => post.content !== null
  const rows = fitting.every(isComplete) ? fitting : await findPosts(db, fitting.map(({ id }) => id))
  return {
    // A post that was deleted meanwhile is left out.
    rows: rows.filter((row) => row !== undefined),
    next: fitting.length === listed.length ? next : placeOf(fitting.at(-1)!),
  }
}

/** The key of an author's newest posts in a batch: the author's id, the number of posts and their fields. */
export type AuthorPostsKey = `${string}:${number}:${string}`

/** Returns the key to read the `first` newest posts of an author with. */
export function authorPostsKey (authorId: string, first: number, fields: readonly PostField[]): AuthorPostsKey {
  return `${authorId}:${first}:${fields.join()}`
}

// Prepared queries by the fields that they read. There are few combinations of fields.
const selectsOfAuthors = new Map<string, ReturnType<typeof prepareSelectOfAuthors>>()

function prepareSelectOfAuthors (fields: ReadonlySet<string>) {
  return prepare((
    db, { places, authors, firsts }: { places: string, authors: string, firsts: string }
  ): Compilable<ListedPost & { place: number }> => {
    const asked = sql<{ place: number, author: string, first: number }>`unnest(
      ${places}::int[], ${authors}::uuid[], ${firsts}::int[]
    )`.as<'asked'>(sql`asked(place, author, first)`)
    const posts = db.selectFrom(asked)
      .innerJoinLateral((lateral) => lateral.selectFrom('posts').select(columnsOf(fields))
        .select(['position as order', contentBytes])
        .whereRef('author_id', '=', 'asked.author').orderBy('position', 'desc')
        .limit(sql<number>`asked.first`).as('post'), (join) => join.onTrue())
    if (!fields.has('content')) return posts.select(membersOf(fields)).select('place')
    const listBytes = sql<string>`sum("contentBytes") over (partition by place)`.as('listBytes')
    return db.selectFrom(posts.selectAll('post').select(['place', listBytes]).as('post'))
      .select([...membersOf(fields, contentOfShortLists), 'contentBytes', 'place']).orderBy('place')
      .orderBy('order', 'desc')
  })
}

// The contents of lists that are short enough, until the statement has enough of them.
const contentOfShortLists = sql<string | null>`case
  when "listBytes" <= ${sql.lit(MAX_BYTES_PER_LIST)}
  and sum("contentBytes") filter (where "listBytes" <= ${sql.lit(MAX_BYTES_PER_LIST)}) over (order by place) <= ${sql.lit(MAX_BYTES_PER_STATEMENT)}
  then content
end`

/**
 * Returns the newest posts of several authors, as one statement. Each key has its own number of posts; the fields are
 * those that any of the keys requests. It does not check whether an author is deleted, because callers have just read
 * the authors.
 */
export async function listPostsOfAuthors (db: Database, keys: readonly AuthorPostsKey[]): Promise<ListedPost[][]> {
  const asked = keys.map((key) => key.split(':') as [string, string, string])
  const select = selectFields(new Set(asked.map(([,, fields]) => fields)))
  const rows = await select(db, {
    places: arrayOf([...keys.keys()]),
    authors: arrayOf(asked.map(([author]) => author)),
    firsts: arrayOf(asked.map(([, first]) => first)),
  })
  const posts: ListedPost[][] = keys.map(() => [])
  for (const row of rows) posts[row.place]!.push(row)
  return posts
}

// Returns the query for all of these fields, which are separated by commas in each text.
function selectFields (requested: ReadonlySet<string>): ReturnType<typeof prepareSelectOfAuthors> {
  const fields = new Set([...requested].join().split(','))
  const name = postFields.filter((field) => fields.has(field)).join()
  const known = selectsOfAuthors.get(name)
  if (known) return known
  const select = prepareSelectOfAuthors(fields)
  selectsOfAuthors.set(name, select)
  return select
}
