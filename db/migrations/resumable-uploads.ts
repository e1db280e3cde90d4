import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'
import { createTrigger } from './trigger.ts'

/**
 * Adds uploads that are resumed (contract 13.5). One that is unfinished counts toward the quota of its user with the
 * length that it will have, so that its last request cannot fail because of the quota. Triggers count, as those of
 * uploads do.
 */
export async function addResumableUploads (db: Kysely<Tables>, schema: string): Promise<void> {
  // No reference to `users`, because a check of the reference would wait for locks on users.
  await db.schema.createTable('resumable_uploads')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull())
    .addColumn('network', 'text', (column) => column.notNull())
    .addColumn('metadata', 'text', (column) => column.notNull())
    .addColumn('length', 'bigint', (column) => column.notNull())
    .addColumn('received', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('parts', 'jsonb', (column) => column.notNull().defaultTo(sql`'[]'::jsonb`))
    .addColumn('writer', 'uuid')
    .addColumn('upload_id', 'uuid')
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('resumable_uploads_expires_at').on('resumable_uploads').column('expires_at').execute()
  await db.schema.createIndex('resumable_uploads_unfinished').on('resumable_uploads').columns(['user_id', 'network'])
    .where(sql.ref('upload_id'), 'is', null).execute()
  await countUnfinished(db, schema)
  // The bytes of a deleted user are removed by the next purge.
  await createTrigger(db, schema, 'deleted_users', 'after insert', 'resumable_owner_deleted', sql`
    update ${sql.id(schema, 'resumable_uploads')} set expires_at = now() where user_id = new.user_id`)
}

async function countUnfinished (db: Kysely<Tables>, schema: string): Promise<void> {
  const usage = sql.id(schema, 'upload_usage')
  const unfinished = sql.id(schema, 'resumable_uploads')
  // As in `quotas.ts`, but a user without a row is counted with what is unfinished.
  await sql`
    create or replace function ${sql.id(schema, 'add_upload_usage')}(owner uuid, more_bytes bigint, more_files bigint, quota text) returns void language plpgsql as $$
    declare
      used ${usage}%rowtype;
    begin
      update ${usage} set bytes = bytes + more_bytes, files = files + more_files where user_id = owner returning * into used;
      if not found then
        insert into ${usage} as usage
          select owner, coalesce(sum(counted.size), 0), count(*) from (
            select size from ${sql.id(schema, 'uploads')} where user_id = owner
            union all select length from ${unfinished} where user_id = owner and upload_id is null
          ) as counted
          on conflict (user_id) do update set bytes = usage.bytes + more_bytes, files = usage.files + more_files
          returning * into used;
      end if;
      if used.files <= 0 then
        delete from ${usage} where user_id = owner;
      end if;
      if used.bytes > nullif(split_part(quota, ' ', 1)::bigint, 0) or used.files > nullif(split_part(quota, ' ', 2)::bigint, 0) then
        raise check_violation using message = 'the owner of the upload has no space left', constraint = 'upload_quota';
      end if;
    end $$`.execute(db)
  await sql`
    create function ${sql.id(schema, 'count_resumable_uploads')}() returns trigger language plpgsql as $$
    declare
      quota text := nullif(current_setting('usher.upload_quota', true), '');
    begin
      if tg_op = 'INSERT' then
        perform ${sql.id(schema, 'add_upload_usage')}(user_id, bytes, files, quota) from (
          select user_id, sum(length)::bigint as bytes, count(*) as files from new_uploads where upload_id is null group by user_id order by user_id
        ) as added;
      elsif tg_op = 'UPDATE' then
        perform ${sql.id(schema, 'add_upload_usage')}(user_id, bytes, files, null) from (
          select user_id, sum(size)::bigint as bytes, sum(files)::bigint as files from (
            select user_id, length as size, 1 as files from new_uploads where upload_id is null
            union all select user_id, -length, -1 from old_uploads where upload_id is null
          ) as changes group by user_id having sum(size) <> 0 or sum(files) <> 0 order by user_id
        ) as changed;
      elsif tg_op = 'DELETE' then
        perform ${sql.id(schema, 'add_upload_usage')}(user_id, -bytes, -files, null) from (
          select user_id, sum(length)::bigint as bytes, count(*) as files from old_uploads where upload_id is null group by user_id order by user_id
        ) as removed;
      else
        delete from ${usage};
      end if;
      return null;
    end $$`.execute(db)
  const events = {
    insert: 'referencing new table as new_uploads',
    update: 'referencing old table as old_uploads new table as new_uploads',
    delete: 'referencing old table as old_uploads',
    truncate: '',
  }
  for (const [event, tables] of Object.entries(events)) {
    await sql`
      create trigger ${sql.id(`resumable_uploads_counted_${event}`)} after ${sql.raw(event)} on ${unfinished} ${sql.raw(tables)}
      for each statement execute function ${sql.id(schema, 'count_resumable_uploads')}()`.execute(db)
  }
}
