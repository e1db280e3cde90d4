import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/** The SQLSTATE of a session that was not started because its user has a second factor. */
export const SECOND_FACTOR_MISSING = 'US2FA'

/**
 * Adds passkeys, TOTP with recovery codes, challenges, and how and when a session was authenticated (contract 11.2,
 * 16). Columns of existing tables are nullable, because nodes of the previous release do not set them.
 */
export async function addWaysToSignIn (db: Kysely<Tables>, schema: string): Promise<void> {
  await db.schema.alterTable('sessions')
    .addColumn('amr', sql`text[]`)
    .addColumn('auth_time', 'timestamptz')
    .execute()
  await db.schema.alterTable('sign_ups')
    .addColumn('binding_hash', 'bytea')
    .addColumn('bound_password_hash', 'text')
    .execute()
  await db.schema.alterTable('sign_ups').alterColumn('password_hash', (column) => column.dropNotNull()).execute()

  await db.schema.createTable('passkeys')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('credential_id', 'bytea', (column) => column.notNull().unique())
    .addColumn('public_key', 'bytea', (column) => column.notNull())
    .addColumn('counter', 'bigint', (column) => column.notNull())
    .addColumn('transports', sql`text[]`, (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('backed_up', 'boolean', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('last_used_at', 'timestamptz')
    .execute()
  await db.schema.createIndex('passkeys_user').on('passkeys').column('user_id').execute()

  await db.schema.createTable('totp')
    .addColumn('user_id', 'uuid', (column) => column.primaryKey().references('users.id').onDelete('cascade'))
    .addColumn('secret', 'text', (column) => column.notNull())
    .addColumn('confirmed_at', 'timestamptz')
    .addColumn('last_step', 'bigint', (column) => column.notNull().defaultTo(sql`0`))
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()

  await db.schema.createTable('recovery_codes')
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('hash', 'bytea', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addPrimaryKeyConstraint('recovery_codes_pkey', ['user_id', 'hash'])
    .execute()

  await db.schema.createTable('login_challenges')
    .addColumn('hash', 'bytea', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('password_hash', 'text')
    .addColumn('amr', sql`text[]`, (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull().defaultTo(sql`0`))
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('login_challenges_user').on('login_challenges')
    .columns(['user_id', 'created_at']).execute()
  await db.schema.createIndex('login_challenges_expires_at').on('login_challenges').column('expires_at').execute()

  await db.schema.createTable('used_ceremonies')
    .addColumn('hash', 'bytea', (column) => column.primaryKey())
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('used_ceremonies_expires_at').on('used_ceremonies').column('expires_at').execute()

  // Whoever has a second factor gets no session without it, whatever starts the session. A trigger sees a factor that
  // was added while the statement waited for the lock on the user; a condition of the statement would not. A node of
  // the previous release does not know second factors, and sets no `amr`. It finds no row, and responds that the
  // credentials are wrong.
  await sql`
    create function ${sql.id(schema, 'require_second_factor')}() returns trigger language plpgsql as $$
    begin
      if exists (
        select from ${sql.id(schema, 'totp')} where user_id = new.user_id and confirmed_at is not null
      ) then
        if new.amr is null then return null; end if;
        raise exception 'this user has a second factor' using errcode = ${sql.lit(SECOND_FACTOR_MISSING)};
      end if;
      return new;
    end $$`.execute(db)
  await sql`
    create trigger require_second_factor before insert on ${sql.id(schema, 'sessions')}
    for each row when (new.amr is null or not 'mfa' = any(new.amr))
    execute function ${sql.id(schema, 'require_second_factor')}()`.execute(db)
}
