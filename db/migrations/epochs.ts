import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables.ts'

/**
 * Posts remember the epoch in which they were created. It changes whenever a standby takes over: posts that had not been
 * replicated are lost then, and others get their positions again. The epoch is PostgreSQL's timeline.
 */
export async function createEpochs (db: Kysely<Tables>, schema: string): Promise<void> {
  const timeline = await findTimeline(db)
  const posts = sql.id(schema, 'posts')
  // A constant first: PostgreSQL then does not rewrite the table.
  const { rows: [row] } = await sql<{ epoch: number }>`select ${timeline} as epoch`.execute(db)
  await sql`alter table ${posts} add column epoch integer not null default ${sql.lit(row!.epoch)}`.execute(db)
  await sql`alter table ${posts} alter column epoch set default ${timeline}`.execute(db)
  await sql`create view ${sql.id(schema, 'current_epoch')} as select ${timeline} as epoch`.execute(db)
}

// The first eight digits of the name of a file of the write-ahead log. Some services that are compatible with PostgreSQL have
// no such files, and replicate in other ways.
async function findTimeline (db: Kysely<Tables>) {
  const timeline = sql`('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer`
  await sql`savepoint timeline`.execute(db)
  try {
    await sql`select ${timeline}`.execute(db)
    return timeline
  } catch {
    await sql`rollback to savepoint timeline`.execute(db)
    return sql`0`
  }
}
