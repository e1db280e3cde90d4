import { sql, type Kysely } from 'kysely'
import { channelOf } from '../driver/channel.ts'
import type { Tables } from '../tables.ts'
import { createTrigger } from './trigger.ts'

/**
 * The order of posts is that of their commits: an insert holds a lock from before its first number is drawn until its
 * transaction has ended, which is after it can be seen. So whoever sees a post sees all that have a lower number, but
 * for those that were rolled back or are deleted by then. Committing is no slower for it: PostgreSQL lets only one
 * transaction at a time commit notifications.
 */
export async function createPositions (db: Kysely<Tables>, schema: string): Promise<void> {
  const posts = sql.id(schema, 'posts')
  await sql`alter table ${posts} add column position bigint`.execute(db)
  await sql`
    update ${posts} set position = numbered.position
    from (select id, row_number() over (order by id) as position from ${posts}) numbered where numbered.id = posts.id`.execute(db)
  // Always, so that nobody takes a number past the lock.
  await sql`alter table ${posts} alter position set not null, alter position add generated always as identity`.execute(db)
  await sql`select setval(${`${schema}.posts_position_seq`}, max(position)) from ${posts} having count(*) > 0`.execute(db)

  await db.schema.dropIndex('posts_author').execute()
  await db.schema.createIndex('posts_author').on('posts').columns(['author_id', 'position']).execute()
  await db.schema.createIndex('posts_position').on('posts').column('position').unique().execute()

  await sql`drop trigger post_created on ${posts}`.execute(db)
  await sql`drop function ${sql.id(schema, 'post_created')}()`.execute(db)
  await createTrigger(db, schema, 'posts', 'before insert', 'post_ordered', sql`
    perform pg_advisory_xact_lock(hashtextextended(${sql.lit(`usher posts of ${schema}`)}, 0))`, 'statement')
  // A mere call to look: what there is to see has its numbers. Nodes that have another way to call each other say so.
  await createTrigger(db, schema, 'posts', 'after insert', 'post_created', sql`
    if current_setting('usher.quiet', true) is distinct from 'on' then
      perform pg_notify(${sql.lit(channelOf(schema, 'post_created'))}, '');
    end if`, 'statement')
}
