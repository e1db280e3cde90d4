import { sql, type Kysely } from 'kysely'
import type { IndexesOf } from './indexes.ts'
import type { Tables } from '../tables/index.ts'

/**
 * Adds the identities that users have at providers, and which of them has started a session or a login that waits for
 * its second factor (contract 16.5). Columns of existing tables are nullable, because nodes of the previous release do
 * not set them.
 */
export async function createIdentities (db: Kysely<Tables>): Promise<void> {
  await db.schema.createTable('identities').ifNotExists()
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('user_id', 'uuid', (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('provider', 'text', (column) => column.notNull())
    .addColumn('issuer', 'text', (column) => column.notNull())
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('email', 'text')
    .addColumn('tokens', 'text')
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('last_used_at', 'timestamptz')
    .addUniqueConstraint('identities_subject', ['issuer', 'subject'])
    .execute()
  await db.schema.createIndex('identities_user').ifNotExists().on('identities').column('user_id').execute()
  await db.schema.alterTable('sessions').addColumn('identity_id', 'uuid', (column) => column.ifNotExists()).execute()
  await db.schema.alterTable('sessions').addColumn('provider_sid', 'text', (column) => column.ifNotExists()).execute()
  // A login that waits for its second factor ends with the identity that has begun it.
  await db.schema.alterTable('login_challenges')
    .addColumn('identity_id', 'uuid', (column) =>
      column.ifNotExists().references('identities.id').onDelete('cascade'))
    .execute()
  await db.schema.alterTable('login_challenges')
    .addColumn('provider_sid', 'text', (column) => column.ifNotExists()).execute()
}

/** The index by which a provider's logout finds the sessions that it ends. */
export const providerSessionIndexes: IndexesOf = (schema) => [
  {
    name: 'sessions_provider_sid',
    on: sql`${sql.id(schema, 'sessions')} (provider_sid) where provider_sid is not null`,
  },
]
