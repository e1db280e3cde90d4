import { sql, type Kysely } from 'kysely'
import { channelOf } from '../driver/channel.ts'
import type { Tables } from '../tables/index.ts'
import { createTrigger } from './trigger.ts'

/** Adds rotation of cookies and signing keys, password tokens, throttling and the account log. */
export async function createAccounts (db: Kysely<Tables>, schema: string): Promise<void> {
  // Cookies of earlier versions do not contain the id of their session, so they cannot be refreshed.
  await db.deleteFrom('sessions').execute()
  await db.schema.alterTable('sessions')
    .addColumn('rotation_key', 'bytea', (column) => column.notNull())
    .addColumn('rotations', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('rotated_at', sql`timestamptz[]`, (column) => column.notNull().defaultTo('{}'))
    .execute()
  await db.schema.createIndex('sessions_expires_at').on('sessions').column('expires_at').execute()
  // A token expires at most one day after the login or the refresh that returned it. If a session was not used for
  // longer, as is the case for nearly all that expire, no token of it is valid, so the nodes need not be notified of
  // its end.
  await sql`
    create or replace function ${sql.id(schema, 'session_ended')}() returns trigger language plpgsql as $$
    begin
      if old.last_used_at > now() - interval '25 hours' then
        insert into ${sql.id(schema, 'ended_sessions')} (id) values (old.id) on conflict do nothing;
        perform pg_notify(${sql.lit(channelOf(schema, 'session_ended'))}, old.id::text);
      end if;
      return null;
    end $$`.execute(db)

  await db.schema.alterTable('signing_keys')
    .addColumn('active_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
  await createTrigger(db, schema, 'signing_keys', 'after insert or update or delete', 'keys_changed', sql`
    perform pg_notify(${sql.lit(channelOf(schema, 'keys_changed'))}, '')`)

  await db.schema.createTable('password_tokens')
    .addColumn('hash', 'bytea', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('password_tokens_user').on('password_tokens').column('user_id').execute()
  // A token that was sent to a former address proves nothing once the user has another address.
  await createTrigger(db, schema, 'users', 'after update of email', 'email_changed', sql`
    if old.email <> new.email then delete from ${sql.id(schema, 'password_tokens')} where user_id = new.id; end if`)

  // Unlogged, because it is written at every login, and because losing it in a crash does little harm.
  await sql`
    create unlogged table ${sql.id(schema, 'throttle')} (key text primary key, free_at timestamptz not null, granted integer not null)`
    .execute(db)
  await db.schema.createIndex('throttle_free_at').on('throttle').column('free_at').execute()

  await db.schema.createTable('audit')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('action', 'text', (column) => column.notNull())
    // No references, because entries remain when the users they refer to are deleted.
    .addColumn('actor_id', 'uuid')
    .addColumn('user_id', 'uuid')
    .addColumn('session_id', 'uuid')
    .addColumn('address', 'text', (column) => column.notNull())
    .addColumn('user_agent', 'text', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
  await db.schema.createIndex('audit_user').on('audit').columns(['user_id', 'id']).execute()
  await db.schema.createIndex('audit_action').on('audit').columns(['action', 'id']).execute()
  // For the lookup at every login of the addresses from which an account has logged in.
  await db.schema.createIndex('audit_login').on('audit').columns(['user_id', 'address'])
    .where(sql<boolean>`action = 'login'`).execute()
}
