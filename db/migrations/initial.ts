import { sql, type Kysely } from 'kysely'
import { channelOf } from '../driver/channel.ts'
import type { Tables } from '../tables/index.ts'
import { createTrigger } from './trigger.ts'

/** Creates the table of users, with unique e-mail addresses regardless of case. */
export async function createUsers (db: Kysely<Tables>): Promise<void> {
  await db.schema.createTable('users')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('email', 'text', (column) => column.notNull())
    .addColumn('role', 'text', (column) => column.notNull().check(sql`role in ('admin', 'user')`))
    .addColumn('password_hash', 'text')
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('updated_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
  await db.schema.createIndex('users_email').on('users').expression(sql`lower(email)`).unique().execute()
  await db.schema.createIndex('users_role').on('users').columns(['role', 'id']).execute()
}

/** Creates the tables of signing keys, sessions and ended sessions. */
export async function createSessions (db: Kysely<Tables>, schema: string): Promise<void> {
  await db.schema.createTable('signing_keys')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('private_key', 'text', (column) => column.notNull())
    .addColumn('public_key', 'text', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
  await db.schema.createTable('sessions')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('secret_hash', 'bytea', (column) => column.notNull().unique())
    .addColumn('address', 'text', (column) => column.notNull())
    .addColumn('user_agent', 'text', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('last_used_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('sessions_user').on('sessions').column('user_id').execute()
  await db.schema.createTable('ended_sessions')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('ended_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
  await db.schema.createIndex('ended_sessions_ended_at').on('ended_sessions').column('ended_at').execute()
  // A trigger notifies every node of a session's end, however its row is deleted: by a logout, with its user, or by
  // hand.
  await createTrigger(db, schema, 'sessions', 'after delete', 'session_ended', sql`
    insert into ${sql.id(schema, 'ended_sessions')} (id) values (old.id) on conflict do nothing;
    perform pg_notify(${sql.lit(channelOf(schema, 'session_ended'))}, old.id::text)`)
}

/** Creates the table of posts. A trigger notifies the nodes of each new post; `createPositions` replaces it. */
export async function createPosts (db: Kysely<Tables>, schema: string): Promise<void> {
  await db.schema.createTable('posts')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('author_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('title', 'text', (column) => column.notNull())
    .addColumn('content', 'text', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('updated_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
  await db.schema.createIndex('posts_author').on('posts').columns(['author_id', 'id']).execute()
  await createTrigger(db, schema, 'posts', 'after insert', 'post_created', sql`
    perform pg_notify(${sql.lit(channelOf(schema, 'post_created'))}, new.id::text)`)
}

/** Creates the table with the records of uploads. */
export async function createUploads (db: Kysely<Tables>): Promise<void> {
  await db.schema.createTable('uploads')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    // Not a cascade: the row remains until its file is removed, so that no file is left behind on the disk.
    .addColumn('user_id', 'uuid', (column) => column.references('users.id').onDelete('set null'))
    .addColumn('filename', 'text', (column) => column.notNull())
    .addColumn('media_type', 'text', (column) => column.notNull())
    .addColumn('size', 'bigint', (column) => column.notNull())
    .addColumn('sha256', 'text', (column) => column.notNull())
    .addColumn('description', 'text', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
  await db.schema.createIndex('uploads_user').on('uploads').column('user_id').execute()
}
