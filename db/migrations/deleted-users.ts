import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'
import { createTrigger } from './trigger.ts'

/**
 * Lets a user's row be deleted before the user's posts, uploads and audit entries are. A cascade over hundreds of
 * thousands of rows would hold its locks for seconds. Instead, a trigger queues the user in `deleted_users`, so that
 * deletions by an older node or by hand are queued as well. The posts and uploads of a queued user are invisible, and
 * are removed in batches.
 */
export async function createDeletedUsers (db: Kysely<Tables>, schema: string): Promise<void> {
  // The order is that of the locks for creating posts and uploads, so that neither can cause a deadlock.
  await sql`lock table ${sql.id(schema, 'users')}, ${sql.id(schema, 'posts')}, ${sql.id(schema, 'uploads')} in access exclusive mode`
    .execute(db)
  await db.schema.createTable('deleted_users')
    .addColumn('user_id', 'uuid', (column) => column.primaryKey())
    .addColumn('posts_below', 'bigint', (column) => column.notNull().defaultTo(sql`9223372036854775807`))
    .addColumn('audit_below', 'uuid', (column) =>
      column.notNull().defaultTo(sql`'ffffffff-ffff-ffff-ffff-ffffffffffff'`))
    .execute()
  await createTrigger(db, schema, 'users', 'after delete', 'user_deleted', sql`
    insert into ${sql.id(schema, 'deleted_users')} (user_id) values (old.id) on conflict do nothing`)
  // No foreign key is needed for posts: the statement that creates posts locks the rows of their authors.
  await db.schema.alterTable('posts').dropConstraint('posts_author_id_fkey').execute()
  await db.schema.alterTable('uploads').dropConstraint('uploads_user_id_fkey').execute()
  await createTrigger(db, schema, 'uploads', 'after insert', 'upload_owned', sql`
    if new.user_id is not null then
      perform 1 from ${sql.id(schema, 'users')} where id = new.user_id for key share;
      if not found then
        raise foreign_key_violation using message = 'the owner of an upload does not exist', constraint = 'uploads_user_id_fkey';
      end if;
    end if`)
}
