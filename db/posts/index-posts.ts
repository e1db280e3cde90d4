import { sql } from 'kysely'
import { schemaOf } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import type { Database } from '../tables/index.ts'

/** What one statement has put into the index. */
export interface Indexed {
  /** How many creations, changes and deletions; 0 if there are no more. */
  events: number
  /** Whether another node is filling the index at this moment, so that this statement has done nothing. */
  isBusy: boolean
}

/**
 * How many events one statement indexes at most. With them, it takes a tenth of a second of PostgreSQL: a node takes
 * statements that last much longer for a database that has stalled.
 */
export const MAX_EVENTS = 100
const BYTES_PER_EVENT = 512

/**
 * Puts the words of the next posts that were created, changed or deleted into the index of searches, in commit order.
 * One node at a time does this: the row of `indexed_posts` is its lock.
 * @param limit the number of events, up to `MAX_EVENTS`. A post takes the more time the more words it has, so there are
 *   fewer if posts are long, but one at least
 */
export async function indexPosts (db: Database, limit: number): Promise<Indexed> {
  const s = sql.id(schemaOf(db))
  // As a join, it would not be a condition of the indexes, and each statement would read all posts before.
  const last = sql`(select position from last)`
  const { rows: [indexed] } = await sql<{ events: number }>`
    with last as (select position from ${s}.indexed_posts for update skip locked),
    next as (
      select event.id, event.at, is_deleted, sum(bytes) over (order by event.at) - bytes as before from (
        (select id, position as at, false as is_deleted, octet_length(content) as bytes from ${s}.posts
          where position > ${last} order by position limit ${sql.lit(limit)})
        union all (select id, change_position, false, octet_length(content) from ${s}.posts
          where change_position > ${last} order by change_position limit ${sql.lit(limit)})
        union all (select post_id, position, true, 0 from ${s}.post_deletions
          where position > ${last} order by position limit ${sql.lit(limit)})
      ) as event order by event.at limit ${sql.lit(limit)}
    ),
    events as materialized (select * from next where before < ${sql.lit(limit * BYTES_PER_EVENT)}),
    removed as (delete from ${s}.post_words where post_id in (select id from events where is_deleted)),
    added as (
      insert into ${s}.post_words (post_id, position, change_position, words)
      select id, position, change_position, ${s}.words_of_post(position, author_id, title, content) from ${s}.posts
      where id = any(array(select id from events where not is_deleted))
      on conflict (post_id) do update set
        position = excluded.position, change_position = excluded.change_position, words = excluded.words
    ),
    moved as (
      update ${s}.indexed_posts set position = (select max(at) from events) where exists (select from events)
    )
    select (select count(*)::integer from events) as events from last`.execute(replanned(db))
  if (indexed) return { events: indexed.events, isBusy: false }
  // The row is locked, or there is none yet.
  await db.insertInto('indexed_posts').values({ position: '0' }).onConflict((conflict) => conflict.doNothing()).execute()
  return { events: 0, isBusy: true }
}
