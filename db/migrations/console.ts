import { sql, type Kysely } from 'kysely'
import type { IndexesOf } from './indexes.ts'
import type { Tables } from '../tables/index.ts'

/** The indexes for lists of users by what concerns their accounts (contract 18.2). */
export const consoleIndexes: IndexesOf = (schema) => [
  { name: 'users_disabled', on: sql`${sql.id(schema, 'users')} (id) where disabled` },
  { name: 'users_service', on: sql`${sql.id(schema, 'users')} (id) where account_kind = 'service'` },
  { name: 'users_verified', on: sql`${sql.id(schema, 'users')} (email_verified, id)` },
]

/**
 * Marks the sessions of the console, and counts the entries of the account log by day, so that nobody has to count them
 * again for each overview. What is counted is derived from the account log: `audit_counted` says up to which entry.
 */
export async function addConsole (db: Kysely<Tables>): Promise<void> {
  await db.schema.alterTable('sessions')
    .addColumn('is_console', 'boolean', (column) => column.notNull().defaultTo(false)).execute()
  await db.schema.createTable('audit_counts')
    .addColumn('day', 'date', (column) => column.notNull())
    .addColumn('action', 'text', (column) => column.notNull())
    .addColumn('count', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('audit_counts_pkey', ['day', 'action'])
    .execute()
  await db.schema.createTable('audit_counted')
    .addColumn('is_only', 'boolean', (column) => column.primaryKey().defaultTo(true).check(sql`is_only`))
    .addColumn('until', 'uuid', (column) => column.notNull())
    .execute()
}
