import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Adds the links and codes of mails with which users log in or step up (contract 16.2, 16.6). Another address voids
 * them, and the logins that have begun with one and wait for the second factor, also if a node of the previous release
 * changes it.
 */
export async function addLoginMails (db: Kysely<Tables>, schema: string): Promise<void> {
  await db.schema.createTable('login_mails')
    .addColumn('hash', 'bytea', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.references('users.id').onDelete('cascade'))
    .addColumn('session_id', 'uuid')
    .addColumn('binding_hash', 'bytea')
    .addColumn('code_hash', 'bytea', (column) => column.notNull())
    .addColumn('address_hash', 'bytea', (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull().defaultTo(sql`0`))
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .execute()
  for (const column of ['user_id', 'binding_hash', 'address_hash', 'expires_at'] as const) {
    await db.schema.createIndex(`login_mails_${column.replace(/_(id|hash)$/, '')}`).on('login_mails').column(column)
      .execute()
  }
  await sql`
    create or replace function ${sql.id(schema, 'mailbox_changed')}() returns trigger language plpgsql as $$
    begin
      delete from ${sql.id(schema, 'email_tokens')} where user_id = new.id;
      delete from ${sql.id(schema, 'login_mails')} where user_id = new.id;
      delete from ${sql.id(schema, 'login_challenges')} where user_id = new.id and password_hash is null;
      new.email_verified := false;
      new.email_changed_at := now();
      return new;
    end $$`.execute(db)
}
