import { sql, type Kysely } from 'kysely'
import { lock } from './postgres.ts'
import type { Tables } from './tables.ts'

/**
 * Brings the Postgres schema up to date. Many nodes may start at once: they wait for one another, and each
 * migration runs once. Throws the cause where one fails; nothing of it is left behind.
 *
 * Not by Kysely's migrator: its lock is the session's, which hangs on some connection of the pool, and its look
 * at all tables of the database fails where somebody else drops one of theirs at that moment.
 */
export async function migrate (db: Kysely<Tables>, schema: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    // A table with many rows takes a while, and so do the other nodes.
    await sql`set local statement_timeout = 0`.execute(trx)
    // Until the commit: whoever comes next sees all of it.
    await lock(trx, `migrations of ${schema}`)
    const log = trx.withSchema(schema).withTables<{ migrations: { name: string, timestamp: string } }>()
    if (!await exists(trx, schema)) await createLog(trx, schema)
    const ran = new Set((await log.selectFrom('migrations').select('name').execute()).map(({ name }) => name))
    for (const [name, run] of Object.entries(migrations)) {
      if (ran.has(name)) continue
      await run(trx.withSchema(schema), schema)
      await log.insertInto('migrations').values({ name, timestamp: new Date().toISOString() }).execute()
    }
  })
}

// In this order. One that has been released stays as it is; what changes comes as another.
const migrations: Record<string, (db: Kysely<Tables>, schema: string) => Promise<void>> = {
  '0001-users': createUsers,
  '0002-sessions': createSessions,
  '0003-posts': createPosts,
  '0004-uploads': createUploads,
}

// Asked, rather than `if not exists`, for which a role needs the right to create even where all is there.
async function exists (db: Kysely<Tables>, schema: string): Promise<boolean> {
  const { rows: [row] } = await sql<{ found: boolean }>`select to_regclass(${`${schema}.migrations`}) is not null as found`.execute(db)
  return row!.found
}

async function createLog (db: Kysely<Tables>, schema: string): Promise<void> {
  const { rows } = await sql`select 1 from pg_namespace where nspname = ${schema}`.execute(db)
  if (rows.length === 0) await db.schema.createSchema(schema).execute()
  await db.withSchema(schema).schema.createTable('migrations')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('timestamp', 'text', (column) => column.notNull())
    .execute()
}

async function createUsers (db: Kysely<Tables>): Promise<void> {
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

async function createSessions (db: Kysely<Tables>, schema: string): Promise<void> {
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
  // A trigger, so that a session ends on every node however its row goes: by a logout, with its user, or by hand.
  await createTrigger(db, schema, 'sessions', 'after delete', 'session_ended', sql`
    insert into ${sql.id(schema, 'ended_sessions')} (id) values (old.id) on conflict do nothing;
    perform pg_notify(${sql.lit(channelOf(schema, 'session_ended'))}, old.id::text)`)
}

async function createPosts (db: Kysely<Tables>, schema: string): Promise<void> {
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

async function createUploads (db: Kysely<Tables>): Promise<void> {
  await db.schema.createTable('uploads')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    // Not a cascade: the row outlives its user until its file is gone, so that none is forgotten on the disk.
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

async function createTrigger (
  db: Kysely<Tables>, schema: string, table: string, when: string, name: string, body: ReturnType<typeof sql>
): Promise<void> {
  await sql`
    create function ${sql.id(schema, name)}() returns trigger language plpgsql as $$
    begin
      ${body};
      return null;
    end $$`.execute(db)
  await sql`
    create trigger ${sql.id(name)} ${sql.raw(when)} on ${sql.id(schema, table)}
    for each row execute function ${sql.id(schema, name)}()`.execute(db)
}

/** The notification channel of an event in a Postgres schema. */
export function channelOf (schema: string, event: 'session_ended' | 'post_created'): string {
  return `${schema}_${event}`
}
