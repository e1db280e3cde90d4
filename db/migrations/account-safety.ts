import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/** Adds what users need for disabled accounts and verified addresses (contract 11.3, 11.4). No row is rewritten. */
export async function secureAccounts (db: Kysely<Tables>): Promise<void> {
  await db.schema.alterTable('users')
    .addColumn('email_verified', 'boolean', (column) => column.notNull().defaultTo(sql`false`))
    .addColumn('email_changed_at', 'timestamptz')
    .addColumn('disabled', 'boolean', (column) => column.notNull().defaultTo(sql`false`))
    .execute()
}
