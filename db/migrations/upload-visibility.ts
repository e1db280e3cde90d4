import { sql, type Kysely } from 'kysely'
import type { IndexesOf } from './indexes.ts'
import type { Tables } from '../tables/index.ts'
import { createTrigger } from './trigger.ts'

/** The index for the uploads of a user, newest first (contract 13.1). */
export const uploadListIndexes: IndexesOf = (schema) => [
  { name: 'uploads_user_list', on: sql`${sql.id(schema, 'uploads')} (user_id, id)` },
]

/**
 * Adds private uploads, links to uploads, and when an upload was renamed (contract 13.1, 13.2). Drops the index on the
 * owner alone, which the one for lists replaces.
 *
 * Triggers announce what must stop a download, so that changes by another release or by psql also stop it. A
 * notification has one of the forms `deleted <upload>`, `private <upload>`, `link <link>` and `owner <user>`.
 */
export async function addUploadVisibility (db: Kysely<Tables>, schema: string): Promise<void> {
  // A node of the previous release sets neither.
  await db.schema.alterTable('uploads')
    .addColumn('is_private', 'boolean', (column) => column.notNull().defaultTo(false)).execute()
  await db.schema.alterTable('uploads').addColumn('renamed_at', 'timestamptz').execute()
  await createLinks(db)
  await announceChanges(db, schema)
  await voidLinksOfChangedUsers(db, schema)
  await db.schema.dropIndex('uploads_user').ifExists().execute()
}

async function createLinks (db: Kysely<Tables>): Promise<void> {
  await db.schema.createTable('upload_links')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('upload_id', 'uuid', (column) => column.notNull())
    .addColumn('owner_id', 'uuid', (column) => column.notNull())
    .addColumn('created_by', 'uuid')
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('secret_hash', 'bytea', (column) => column.notNull().unique())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('upload_links_upload').on('upload_links').columns(['upload_id', 'id']).execute()
  await db.schema.createIndex('upload_links_owner').on('upload_links').column('owner_id').execute()
  await db.schema.createIndex('upload_links_creator').on('upload_links').column('created_by').execute()
  await db.schema.createIndex('upload_links_expires_at').on('upload_links').column('expires_at').execute()
}

async function announceChanges (db: Kysely<Tables>, schema: string): Promise<void> {
  const notify = (what: string, id: ReturnType<typeof sql>) =>
    sql`perform pg_notify(${sql.lit(`${schema}_upload_changed`)}, ${sql.lit(`${what} `)} || ${id})`
  // In an update that is a deletion, the owner becomes null.
  await createTrigger(db, schema, 'uploads', 'after update or delete', 'upload_changed', sql`
    if old.user_id is not null and (tg_op = 'DELETE' or new.user_id is null) then
      ${notify('deleted', sql`old.id`)};
      delete from ${sql.id(schema, 'upload_links')} where upload_id = old.id;
    elsif tg_op = 'DELETE' then
      return null;
    elsif new.is_private and not old.is_private then
      ${notify('private', sql`old.id`)};
    end if`)
  await createTrigger(db, schema, 'upload_links', 'after delete', 'upload_link_deleted', sql`
    if old.expires_at > now() then ${notify('link', sql`old.id`)}; end if`)
  await createTrigger(db, schema, 'deleted_users', 'after insert', 'upload_owner_deleted', sql`
    ${notify('owner', sql`new.user_id`)}`)
}

// Links must not outlive a repair of the account, nor the permission of who created them: a thief may have created
// them. So they are void when the password, the role or `disabled` changes, also if a node of the previous release
// changes it. `usher.rehash` says that the password remains the same, and only its hash is a better one.
async function voidLinksOfChangedUsers (db: Kysely<Tables>, schema: string): Promise<void> {
  const name = sql.id(schema, 'void_upload_links')
  await sql`
    create function ${name}() returns trigger language plpgsql as $$
    begin
      if coalesce(current_setting('usher.rehash', true), '') = '' then
        delete from ${sql.id(schema, 'upload_links')} where owner_id = new.id;
        delete from ${sql.id(schema, 'upload_links')} where created_by = new.id;
      end if;
      return null;
    end $$`.execute(db)
  await sql`
    create trigger void_upload_links after update on ${sql.id(schema, 'users')}
    for each row when (
      old.password_hash is distinct from new.password_hash or old.role <> new.role or (new.disabled and not old.disabled)
    ) execute function ${name}()`.execute(db)
}
