import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Adds the results that are returned when a request with an `Idempotency-Key` is repeated (contract 10.4). Triggers
 * erase a result when its record is deleted, by whatever means, because it has the record's data.
 */
export async function createIdempotencyKeys (db: Kysely<Tables>, schema: string): Promise<void> {
  await db.schema.createTable('idempotency_keys')
    .addColumn('key', 'uuid', (column) => column.notNull())
    .addColumn('part', 'uuid', (column) => column.notNull())
    .addColumn('fingerprint', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('record_id', 'uuid')
    .addColumn('result', 'text')
    .addColumn('row_version', 'bigint')
    .addColumn('expires_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now() + interval '24 hours'`))
    .addPrimaryKeyConstraint('idempotency_keys_pkey', ['key', 'part'])
    .execute()
  // Both values ascend, so that an insertion only touches the last page of each index.
  await db.schema.createIndex('idempotency_keys_record').on('idempotency_keys').column('record_id').execute()
  await db.schema.createIndex('idempotency_keys_expires_at').on('idempotency_keys').column('expires_at').execute()

  await sql`
    create function ${sql.id(schema, 'erase_results')}() returns trigger language plpgsql as $$
    begin
      update ${sql.id(schema, 'idempotency_keys')} set result = null where record_id in (select id from old_rows) and result is not null;
      return null;
    end $$`.execute(db)
  for (const table of ['users', 'posts', 'uploads'] as const) {
    await sql`
      create trigger erase_results after delete on ${sql.id(schema, table)} referencing old table as old_rows
      for each statement execute function ${sql.id(schema, 'erase_results')}()`.execute(db)
  }
}
