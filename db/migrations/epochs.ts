import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Stores with each post the epoch in which it was created. The epoch is PostgreSQL's timeline. It changes when a
 * standby takes over: posts that were not replicated are then lost, and new posts get their positions.
 */
export async function createEpochs (db: Kysely<Tables>, schema: string): Promise<void> {
  const timeline = await findTimeline(db)
  const posts = sql.id(schema, 'posts')
  // The first default is a constant, because PostgreSQL then adds the column without rewriting the table.
  const { rows: [row] } = await sql<{ epoch: number }>`select ${timeline} as epoch`.execute(db)
  await sql`alter table ${posts} add column epoch integer not null default ${sql.lit(row!.epoch)}`.execute(db)
  await sql`alter table ${posts} alter column epoch set default ${timeline}`.execute(db)
  await sql`create view ${sql.id(schema, 'current_epoch')} as select ${timeline} as epoch`.execute(db)
}

// Returns an expression for the timeline, which is the first eight hexadecimal digits of the names of write-ahead log
// files. Some services that are compatible with PostgreSQL have no such files and replicate in other ways. There the
// epoch is always 0.
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
