import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Adds what imports of users need (contract 16.7): how far each one is, and which kinds of password hashes there are
 * besides those of this installation.
 */
export async function addImports (db: Kysely<Tables>): Promise<void> {
  await db.schema.createTable('user_imports')
    .addColumn('file_hash', 'bytea', (column) => column.primaryKey())
    .addColumn('position', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('line', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('imported', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('admins', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('rejected', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('rejected_bytes', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('started_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('finished_at', 'timestamptz')
    .execute()
  await db.schema.createTable('password_kinds')
    .addColumn('kind', 'text', (column) => column.primaryKey())
    .addColumn('signer_key', 'text')
    .addColumn('checked_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
}
