import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/** Adds the table in which nodes recognise the standbys of a database (contract 14.7). */
export async function createReplicaMarks (db: Kysely<Tables>): Promise<void> {
  await db.schema.createTable('replica_marks')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
}
