import { sql, type Kysely } from 'kysely'
import { channelOf } from '../driver/channel.ts'
import type { Tables } from '../tables/index.ts'
import { createTrigger } from './trigger.ts'

/**
 * Numbers posts in commit order. An insert takes a lock before its first position is assigned, and holds it until its
 * transaction has ended, when its posts are visible. Therefore a reader who sees a post also sees all posts with lower
 * positions, except for those that were rolled back or are already deleted. This does not make commits slower, because
 * PostgreSQL commits transactions with notifications one at a time in any case.
 */
export async function createPositions (db: Kysely<Tables>, schema: string): Promise<void> {
  const posts = sql.id(schema, 'posts')
  await sql`alter table ${posts} add column position bigint`.execute(db)
  await sql`
    update ${posts} set position = numbered.position
    from (select id, row_number() over (order by id) as position from ${posts}) numbered where numbered.id = posts.id`
    .execute(db)
  // `generated always`, so that no insert can set a position without regard to the lock.
  await sql`alter table ${posts} alter position set not null, alter position add generated always as identity`
    .execute(db)
  await sql`select setval(${`${schema}.posts_position_seq`}, max(position)) from ${posts} having count(*) > 0`
    .execute(db)

  await db.schema.dropIndex('posts_author').execute()
  await db.schema.createIndex('posts_author').on('posts').columns(['author_id', 'position']).execute()
  await db.schema.createIndex('posts_position').on('posts').column('position').unique().execute()

  await sql`drop trigger post_created on ${posts}`.execute(db)
  await sql`drop function ${sql.id(schema, 'post_created')}()`.execute(db)
  await createTrigger(db, schema, 'posts', 'before insert', 'post_ordered', sql`
    perform pg_advisory_xact_lock(hashtextextended(${sql.lit(`usher posts of ${schema}`)}, 0))`, 'statement')
  // The notification has no payload. It only causes nodes to read the posts after the last position that they know.
  // Nodes that announce posts through an emitter suppress it with `usher.quiet`.
  await createTrigger(db, schema, 'posts', 'after insert', 'post_created', sql`
    if current_setting('usher.quiet', true) is distinct from 'on' then
      perform pg_notify(${sql.lit(channelOf(schema, 'post_created'))}, '');
    end if`, 'statement')
}
