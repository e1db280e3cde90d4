import { sql, type RawBuilder } from 'kysely'
import { LAST_POSITION, type Place } from '../../schema/http/cursor.ts'
import { SearchNotReady } from '../../schema/posts/post.ts'
import { arrayOf, isUuid, schemaOf } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import type { Database } from '../tables/index.ts'
import { firstPositionSince, listPostsById, type ListedPage, type ListPostsQuery } from './posts.ts'

export interface SearchPostsQuery extends ListPostsQuery {
  /** The words that a post must have in its title or content. The last one may be the beginning of a word. */
  q: string
}

// A word of at least this many characters at the end of a search may be the beginning of a longer one. Too many words
// begin with the same one or two.
const SHORTEST_PREFIX = 3
// The windows of 4096 positions, see `words_of_post` in `db/migrations/0006.ts`, that one statement looks through.
const WINDOWS = 64
// How much may be missing in the index. A search looks at these posts themselves.
const MAX_MISSING = 500
const MAX_MISSING_BYTES = 1024 * 1024

/**
 * Returns a page of the posts that have the words of a search, in commit order, by default newest first, by keyset. It
 * looks through the index from where the page begins, and stops when the page is full, or at the first part that ends
 * after `patienceMs`: then it has fewer posts than requested, although another page follows. Throws `SearchNotReady` if
 * the index lacks too many posts.
 */
export async function searchPosts (db: Database, query: SearchPostsQuery, patienceMs: number): Promise<ListedPage> {
  if (query.authorId !== undefined && !isUuid(query.authorId)) return { rows: [], next: null }
  const until = performance.now() + patienceMs
  const { limit, fields, isOldestFirst } = query
  const found: Found[] = []
  let next: Place | null = null
  do {
    const part = await searchWindows(
      db, { ...query, after: next?.position ?? query.after, limit: limit + 1 - found.length }
    )
    found.push(...part.found)
    next = part.next
  } while (found.length <= limit && next && performance.now() < until)
  const rows = found.slice(0, limit)
  const { position, epoch } = rows.at(-1) ?? {}
  return {
    rows: await listPostsById(db, rows.map(({ id }) => id), fields, isOldestFirst),
    next: found.length > limit ? { position: position!, epoch: epoch! } : next,
  }
}

/** The number of characters of an excerpt. */
export const EXCERPT = 160

/** Returns how the contents of posts begin, by their ids. */
export async function readExcerpts (db: Database, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.selectFrom('posts')
    .select(['id', sql<string>`left(content, ${sql.lit(EXCERPT)})`.as('excerpt')])
    .where('id', '=', sql<string>`any(${arrayOf(ids)}::uuid[])`).execute()
  return new Map(rows.map(({ id, excerpt }) => [id, excerpt]))
}

interface Found extends Place { readonly id: string }

/** A row of a part of a search. The first three are null if it has found nothing. */
interface FoundRow {
  id: string | null
  position: string | null
  epoch: number | null
  isReady: boolean
  /** Where the next part begins; null if this one is the last. */
  nextPosition: string | null
  nextEpoch: number
}

async function searchWindows (
  db: Database, { q, authorId, since, isOldestFirst = false, limit, after }: SearchPostsQuery
): Promise<{ found: Found[], next: Place | null }> {
  const s = sql.id(schemaOf(db))
  const order = sql.raw(isOldestFirst ? 'asc' : 'desc')
  const [first, last] = isOldestFirst
    ? [sql`${after ?? '0'}::bigint`, sql`${String(LAST_POSITION)}::bigint`]
    : [sql`0`, sql`${after ?? String(LAST_POSITION)}::bigint`]
  const author = authorId ?? null
  const isWithin = (position: RawBuilder<unknown>) =>
    sql`${position} > (select first from bounds) and ${position} < (select last from bounds)`
  // Windows without a post are not looked at: the next one is that of the next post. Joined, the bounds would not be
  // conditions of the index, and the posts outside of them would be read.
  const windowOf = (condition: RawBuilder<unknown>) => sql`(
    select position >> 12 from ${s}.post_words
    where ${isWithin(sql`position`)} and position >= (select since from bounds) ${condition}
    order by position ${order} limit 1)`
  const follows = isOldestFirst ? sql`position >= (number + 1) << 12` : sql`position < number << 12`
  // The first position that this part does not look at.
  const end = isOldestFirst ? sql`number << 12` : sql`((number + 1) << 12) - 1`
  const isShown = sql`posts.author_id not in (select user_id from ${s}.deleted_users)
    and (${author}::uuid is null or posts.author_id = ${author}::uuid)
    and (${since ?? null}::timestamptz is null or posts.created_at >= ${since ?? null}::timestamptz)`
  // The query for the words in a window, as text.
  const queryOf = (window: RawBuilder<unknown>) => sql`(
    select string_agg('''' || ${window} || '/' || word || case when is_prefix then ''':*' else '''' end, ' & ') from given)`
  const part = sql<FoundRow>`(
    with recursive bounds as materialized (
      select ${first} as first, ${last} as last, ${since === undefined ? sql`0` : firstPositionSince(db, since)} as since,
        coalesce((select position from ${s}.indexed_posts), 0) as indexed
    ),
    given as materialized (
      select word, place = count(*) over () and length(word) >= ${SHORTEST_PREFIX} as is_prefix
      from unnest(${s}.words_of(${q}::text)) with ordinality as words(word, place)
    ),
    windows(number, place) as (
      select ${windowOf(sql``)}, 1 where exists (select from given)
      union all select ${windowOf(sql`and ${follows}`)}, place + 1 from windows
      where number is not null and place <= ${WINDOWS}
    ),
    ends as materialized (select ${end} as at from windows where place > ${WINDOWS} and number is not null),
    queries as materialized (
      select number, (
        ${queryOf(sql`number`)} ${author === null ? sql`` : sql`|| ' & ''' || number || '/@' || ${author}::uuid || ''''`}
      )::tsquery as query from windows where place <= ${WINDOWS} and number is not null
    ),
    missing as materialized (
      (select id, octet_length(content) as bytes from ${s}.posts where position > (select indexed from bounds)
        order by position limit ${MAX_MISSING + 1})
      union (select id, octet_length(content) from ${s}.posts where change_position > (select indexed from bounds)
        order by change_position limit ${MAX_MISSING + 1})
    ),
    readiness as materialized (
      select count(*) <= ${MAX_MISSING} and coalesce(sum(bytes), 0) <= ${MAX_MISSING_BYTES} as is_ready from missing
    ),
    -- A window at a time, until the page is full: the sort is incremental.
    indexed as (
      select id, position, epoch from (select * from queries order by number ${order}) as queries
      cross join lateral (
        select posts.id, posts.position, posts.epoch from (
          -- Neither the order nor the limit may keep the index of words from being used.
          select post_id, position, change_position from ${s}.post_words where words @@ query order by position ${order} offset 0
        ) as words join ${s}.posts on posts.id = post_id
        and posts.change_position is not distinct from words.change_position
        where ${isWithin(sql`words.position`)} and ${isShown}
        order by words.position ${order} limit ${limit}
      ) as post order by number ${order}, position ${order} limit ${limit}
    ),
    others as (
      select posts.id, posts.position, posts.epoch from ${s}.posts
      where id = any(array(select id from missing where (select is_ready from readiness))) and ${isShown}
      and ${isWithin(sql`position`)}
      and not exists (select from ends where position ${isOldestFirst ? sql`>=` : sql`<=`} at)
      and ${s}.words_of_post(position, author_id, title, content) @@ ${queryOf(sql`(position >> 12)`)}::tsquery
    )
    select found.*, is_ready as "isReady", next.position::text as "nextPosition", next.epoch as "nextEpoch"
    from readiness
    left join (select at ${isOldestFirst ? sql`- 1` : sql`+ 1`} as position, coalesce((
      select posts.epoch from ${s}.posts where posts.position <= at order by posts.position desc limit 1), 0) as epoch from ends) as next on true
    left join (select * from indexed union select * from others order by position ${order} limit ${limit}) as found on true
    order by found.position ${order})`.as<'part'>(sql`part`)
  // PostgreSQL would otherwise keep a plan that suits neither all searches nor a table that grows.
  const rows = await replanned(db).selectFrom(part).selectAll().execute()
  const { isReady, nextPosition, nextEpoch } = rows[0]!
  if (!isReady) throw new SearchNotReady()
  return {
    found: rows.flatMap(({ id, position, epoch }) => id === null ? [] : [{ id, position: position!, epoch: epoch! }]),
    next: nextPosition === null ? null : { position: nextPosition, epoch: nextEpoch },
  }
}
