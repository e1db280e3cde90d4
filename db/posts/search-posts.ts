import { sql } from 'kysely'
import { isUuid } from '../driver/postgres.ts'
import type { Database } from '../tables/index.ts'
import type { PostRow } from './posts.ts'

/** How many posts a search looks through. */
export const SEARCHED_POSTS = 5000
const EXCERPT = 160

export interface SearchPostsQuery {
  /** What the titles contain, regardless of case; by default anything. */
  q?: string | undefined
  authorId?: string | undefined
  limit: number
  /** The position of the last post of the previous page. */
  after?: string | undefined
}

/** A post as those who look after them see it. */
export type FoundPost = Omit<PostRow, 'content'> & {
  /** How its content begins. */
  excerpt: string
}

/** A page of posts; `next` is the last position that it has looked at if there are more. */
export interface FoundPosts {
  rows: FoundPost[]
  next: Pick<PostRow, 'position' | 'epoch'> | null
  isPart: boolean
}

/**
 * Returns a page of posts whose titles contain a text, newest first, by keyset. It looks through a part of the list,
 * and the next page goes on where that part ends. `isPart` says whether the page has fewer posts because of that.
 */
export async function searchPosts (
  db: Database, { q = '', authorId, limit, after }: SearchPostsQuery
): Promise<FoundPosts> {
  if (authorId !== undefined && !isUuid(authorId)) return { rows: [], next: null, isPart: false }
  const length = q === '' ? limit + 1 : SEARCHED_POSTS
  const rows = await db
    .with((cte) => cte('part').materialized(), (cte) => cte.selectFrom('posts').select(['id', 'position', 'epoch', 'title'])
      .where('author_id', 'not in', ({ selectFrom }) => selectFrom('deleted_users').select('user_id'))
      .$if(authorId !== undefined, (query) => query.where('author_id', '=', authorId!))
      .$if(after !== undefined, (query) => query.where('position', '<', after!))
      .orderBy('position', 'desc').limit(length))
    .with('last', (cte) => cte.selectFrom('part').select(['position', 'epoch']).orderBy('position').limit(1))
    .with('found', (cte) => cte.selectFrom('part').select(['id', 'position'])
      .where(sql<boolean>`strpos(lower(title), lower(${q})) > 0`).orderBy('position', 'desc').limit(limit + 1))
    .selectFrom('last')
    .leftJoin('found', (join) => join.onTrue())
    .leftJoin('posts', 'posts.id', 'found.id')
    .select([
      'posts.id', 'posts.position', 'posts.epoch', 'posts.author_id as authorId', 'posts.title',
      'posts.created_at as createdAt', 'posts.row_version as rowVersion',
      sql<string>`left(posts.content, ${sql.lit(EXCERPT)})`.as('excerpt'),
      'last.position as lastPosition', 'last.epoch as lastEpoch',
      sql<number>`(select count(*)::integer from part)`.as('looked'),
    ])
    .orderBy('found.position', 'desc').execute()
  const [first] = rows
  if (!first) return { rows: [], next: null, isPart: false }
  const found = rows.filter(({ id }) => id !== null)
    .map(({ lastPosition: _, lastEpoch: __, looked: ___, ...post }) => post as FoundPost)
  if (found.length > limit) return { rows: found.slice(0, limit), next: found[limit - 1]!, isPart: false }
  const isPart = q !== '' && first.looked === length
  return { rows: found, next: isPart ? { position: first.lastPosition, epoch: first.lastEpoch } : null, isPart }
}
