import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/** Adds pending sign-ups and the tokens of links that verify an address or undo a change (contract 11.2, 11.3). */
export async function createSignUps (db: Kysely<Tables>, schema: string): Promise<void> {
  await db.schema.createTable('sign_ups')
    .addColumn('hash', 'bytea', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('email', 'text', (column) => column.notNull())
    .addColumn('password_hash', 'text', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('sign_ups_email').on('sign_ups').expression(sql`lower(email)`).execute()
  await db.schema.createIndex('sign_ups_expires_at').on('sign_ups').column('expires_at').execute()

  await db.schema.createTable('email_tokens')
    .addColumn('hash', 'bytea', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('email', 'text', (column) => column.notNull())
    .addColumn('session_id', 'uuid')
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('email_tokens_user').on('email_tokens').column('user_id').execute()

  await db.schema.createTable('undo_tokens')
    .addColumn('hash', 'bytea', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('position', 'bigint', (column) => column.notNull().generatedAlwaysAsIdentity())
    .addColumn('email', 'text', (column) => column.notNull())
    .addColumn('email_verified', 'boolean', (column) => column.notNull())
    .addColumn('email_changed_at', 'timestamptz')
    .addColumn('password_hash', 'text')
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('undo_tokens_user').on('undo_tokens').column('user_id').execute()

  // A trigger, so that it holds however the address is changed, also by a node of the previous release. Addresses that
  // differ in case only are the same mailbox.
  await sql`
    create function ${sql.id(schema, 'mailbox_changed')}() returns trigger language plpgsql as $$
    begin
      delete from ${sql.id(schema, 'email_tokens')} where user_id = new.id;
      new.email_verified := false;
      new.email_changed_at := now();
      return new;
    end $$`.execute(db)
  await sql`
    create trigger mailbox_changed before update of email on ${sql.id(schema, 'users')}
    for each row when (lower(old.email) <> lower(new.email)) execute function ${sql.id(schema, 'mailbox_changed')}()`
    .execute(db)
}
