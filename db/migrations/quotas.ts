import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Adds what users have stored and posted, for quotas (contract 13.4).
 *
 * Triggers count uploads, so that those count that another release, psql or a cascade adds or removes. A user without a
 * row is counted when an upload of theirs is added or removed next, so the migration counts nothing, and a row that is
 * deleted comes back correct. The triggers run once for each statement, because rows that the statement has not counted
 * yet would otherwise be counted twice.
 *
 * A node limits uploads by the setting `usher.upload_quota` of its statement: bytes and files, where 0 is no limit. A
 * release that does not know quotas sets none, and its uploads count nevertheless.
 */
export async function createQuotas (db: Kysely<Tables>, schema: string): Promise<void> {
  // No references to `users`, because a check of the reference would wait for locks on users.
  await db.schema.createTable('upload_usage')
    .addColumn('user_id', 'uuid', (column) => column.primaryKey())
    .addColumn('bytes', 'bigint', (column) => column.notNull())
    .addColumn('files', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createTable('post_rates')
    .addColumn('user_id', 'uuid', (column) => column.primaryKey())
    .addColumn('since', 'timestamptz', (column) => column.notNull())
    .addColumn('posts', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('post_rates_since').on('post_rates').column('since').execute()
  // Every batch of posts updates these rows. With room on the page, that adds nothing to the indexes.
  await sql`alter table ${sql.id(schema, 'post_rates')} set (fillfactor = 50, autovacuum_vacuum_threshold = 1000)`
    .execute(db)
  await createCountingFunctions(db, schema)
  await createCountingTriggers(db, schema)
}

async function createCountingFunctions (db: Kysely<Tables>, schema: string): Promise<void> {
  const usage = sql.id(schema, 'upload_usage')
  // Concurrent changes of the same user wait for the row. One that inserts it has counted none of the others.
  await sql`
    create function ${sql.id(schema, 'add_upload_usage')}(owner uuid, more_bytes bigint, more_files bigint, quota text) returns void language plpgsql as $$
    declare
      used ${usage}%rowtype;
    begin
      update ${usage} set bytes = bytes + more_bytes, files = files + more_files where user_id = owner returning * into used;
      if not found then
        insert into ${usage} as usage
          select owner, coalesce(sum(size), 0), count(*) from ${sql.id(schema, 'uploads')} where user_id = owner
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
    create function ${sql.id(schema, 'count_uploads')}() returns trigger language plpgsql as $$
    declare
      quota text := nullif(current_setting('usher.upload_quota', true), '');
    begin
      if tg_op = 'INSERT' then
        perform ${sql.id(schema, 'add_upload_usage')}(user_id, bytes, files, quota) from (
          select user_id, sum(size)::bigint as bytes, count(*) as files from new_uploads where user_id is not null group by user_id order by user_id
        ) as added;
      elsif tg_op = 'UPDATE' then
        perform ${sql.id(schema, 'add_upload_usage')}(user_id, bytes, files, null) from (
          select user_id, sum(size)::bigint as bytes, sum(files)::bigint as files from (
            select user_id, size, 1 as files from new_uploads union all select user_id, -size, -1 from old_uploads
          ) as changes where user_id is not null group by user_id having sum(size) <> 0 or sum(files) <> 0 order by user_id
        ) as changed;
      elsif tg_op = 'DELETE' then
        perform ${sql.id(schema, 'add_upload_usage')}(user_id, -bytes, -files, null) from (
          select user_id, sum(size)::bigint as bytes, count(*) as files from old_uploads where user_id is not null group by user_id order by user_id
        ) as removed;
      else
        delete from ${usage};
      end if;
      return null;
    end $$`.execute(db)
}

// Their name comes after that of the trigger that locks the owner, so that every upload takes its locks in the same
// order.
async function createCountingTriggers (db: Kysely<Tables>, schema: string): Promise<void> {
  const events = {
    insert: 'referencing new table as new_uploads',
    update: 'referencing old table as old_uploads new table as new_uploads',
    delete: 'referencing old table as old_uploads',
    truncate: '',
  }
  for (const [event, tables] of Object.entries(events)) {
    await sql`
      create trigger ${sql.id(`uploads_counted_${event}`)} after ${sql.raw(event)} on ${sql.id(schema, 'uploads')} ${sql.raw(tables)}
      for each statement execute function ${sql.id(schema, 'count_uploads')}()`.execute(db)
  }
}
