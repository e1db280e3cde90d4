import { sql, type RawBuilder } from 'kysely'
import { TooManyPosts } from '../../schema/posts/post.ts'
import { anyOf } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import type { Database } from '../tables/index.ts'

/**
 * How many posts each user has created in an hour (contract 13.4). The hour begins with the first post after the
 * previous one has ended. The statement that creates posts counts them, so that the limit holds on all nodes together,
 * whatever they do at the same time.
 */

const isOver = (since: string) => sql<boolean>`${sql.ref(since)} <= now() - interval '1 hour'`

/**
 * Adds to a statement that it counts its posts. Insert only those that `joinCounted` leaves.
 *
 * Nothing may read `counted` before the insertion has taken the lock of `post_ordered`, because a
 * statement with that lock may wait for the rows that this one has counted. So only the insertion reads it.
 * @param admitted the condition that a post is not refused for another reason
 */
export function counting (db: Database, admitted: RawBuilder<boolean>): Database {
  return db
    .with('ranked', (cte) => cte.selectFrom(sql`(
      select given.id, actor, row_number() over (partition by actor order by given.id) as rank, count(*) over (partition by actor) as total
      from given inner join authors on authors.id = author where ${admitted}
    )`.as('posts')).selectAll())
    .with('counted', (cte) => cte.insertInto('post_rates').columns(['user_id', 'since', 'posts'])
      .expression(sql`select actor, now(), count(*) from ranked where actor is not null group by actor order by actor`)
      .onConflict((conflict) => conflict.column('user_id').doUpdateSet({
        since: sql`case when ${isOver('post_rates.since')} then now() else post_rates.since end`,
        posts: sql`case when ${isOver('post_rates.since')} then 0 else post_rates.posts end + excluded.posts`,
      })).returning(['user_id', 'posts'])) as unknown as Database
}

/**
 * Joins the posts of an insertion, which are in `given`, with those within the limit of their actors. The host, which
 * is no user, has none.
 */
export const joinCounted = (perHour: number) => sql`inner join (
  select ranked.id from ranked left join counted on counted.user_id = ranked.actor
  where ranked.actor is null or counted.posts - ranked.total + ranked.rank <= ${perHour}
) as allowed on allowed.id = given.id`

/** Returns the users among these who may not post until their hour has ended, each with the error for their posts. */
export async function findExceeded (
  db: Database, actorIds: readonly (string | null)[], perHour: number
): Promise<Map<string, TooManyPosts>> {
  const rows = await db.selectFrom('post_rates').select('user_id')
    .select(sql<number>`extract(epoch from since + interval '1 hour' - now())::float8`.as('seconds'))
    .where('user_id', '=', sql<string>`any(${actorIds}::uuid[])`).where('posts', '>', `${perHour}`)
    .where(({ not }) => not(isOver('since')))
    .execute()
  return new Map(rows.map(({ user_id: id, seconds }) => [id, new TooManyPosts(seconds)]))
}

/** Deletes at most `limit` rows whose hour has ended. Returns the number of deleted rows. */
export async function deleteOldRates (db: Database, limit: number): Promise<number> {
  const { numDeletedRows } = await replanned(db)
    .deleteFrom('post_rates').where('user_id', '=', ({ selectFrom }) => anyOf(selectFrom('post_rates').select('user_id')
      .where(isOver('since')).orderBy('since').limit(limit).forUpdate().skipLocked()))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
