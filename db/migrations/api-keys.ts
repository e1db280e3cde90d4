import { sql, type Kysely } from 'kysely'
import { channelOf } from '../driver/channel.ts'
import type { Tables } from '../tables/index.ts'
import { createTrigger } from './trigger.ts'

/**
 * Adds API keys and users of kind `service` (contract 17). A key takes the place of a session: when its row is deleted,
 * all nodes get the notification of an ended session, and writes on its behalf are refused.
 */
export async function addApiKeys (db: Kysely<Tables>, schema: string): Promise<void> {
  // Names of columns with underscores are never those of a field of a host.
  await db.schema.alterTable('users')
    .addColumn('account_kind', 'text', (column) =>
      column.notNull().defaultTo('person').check(sql`account_kind in ('person', 'service')`))
    .execute()
  await db.schema.alterTable('audit').addColumn('key_id', 'uuid').execute()

  await db.schema.createTable('api_keys')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('hash', 'bytea', (column) => column.notNull().unique())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('actions', sql`text[]`)
    .addColumn('multi_factor', 'boolean', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('last_used_at', 'timestamptz')
    .addColumn('expires_at', 'timestamptz')
    .execute()
  await db.schema.createIndex('api_keys_user').on('api_keys').column('user_id').execute()
  await db.schema.createIndex('api_keys_expires_at').on('api_keys').column('expires_at').execute()
  await createTrigger(db, schema, 'api_keys', 'after delete', 'api_key_ended', sql`
    insert into ${sql.id(schema, 'ended_sessions')} (id) values (old.id) on conflict do nothing;
    perform pg_notify(${sql.lit(channelOf(schema, 'session_ended'))}, old.id::text)`)

  // Nodes remember what a key may do. So a key does not outlive the role of its user, whoever changes it, also on a
  // node of the previous release, which does not know keys.
  await sql`
    create function ${sql.id(schema, 'void_api_keys')}() returns trigger language plpgsql as $$
    begin
      delete from ${sql.id(schema, 'api_keys')} where user_id = new.id;
      return null;
    end $$`.execute(db)
  await sql`
    create trigger void_api_keys after update of role, disabled on ${sql.id(schema, 'users')}
    for each row when (old.role <> new.role or new.disabled > old.disabled)
    execute function ${sql.id(schema, 'void_api_keys')}()`.execute(db)

  // A service user has no sessions, whatever starts them. No row is found then, as if the credentials were wrong.
  await sql`
    create function ${sql.id(schema, 'refuse_service_sessions')}() returns trigger language plpgsql as $$
    begin
      if exists (select from ${sql.id(schema, 'users')} where id = new.user_id and account_kind = 'service') then
        return null;
      end if;
      return new;
    end $$`.execute(db)
  await sql`
    create trigger refuse_service_sessions before insert on ${sql.id(schema, 'sessions')}
    for each row execute function ${sql.id(schema, 'refuse_service_sessions')}()`.execute(db)

  // The function of `db/migrations/live-sessions.ts`, which also accepts API keys. A key has no signing key.
  await sql`
    create or replace function ${sql.id(schema, 'require_live_sessions')}(ids uuid[], kids text[], until timestamptz)
    returns boolean language plpgsql set enable_seqscan = off as $$
    begin
      if cardinality(array_remove(ids, null)) > 0 and (
        clock_timestamp() >= until
        or (select count(*) from ${sql.id(schema, 'signing_keys')} where id = any(kids)) < cardinality(kids)
        or exists (
          select from unnest(ids) as given(id)
          left join lateral (
            select true as is_live from ${sql.id(schema, 'sessions')} where sessions.id = given.id limit 1
          ) session on true
          left join lateral (
            select true as is_live from ${sql.id(schema, 'api_keys')} where api_keys.id = given.id limit 1
          ) api_key on true
          where given.id is not null and session.is_live is null and api_key.is_live is null
        )
      ) then
        raise exception 'a session has ended' using errcode = 'UE401';
      end if;
      return true;
    end $$`.execute(db)
}
