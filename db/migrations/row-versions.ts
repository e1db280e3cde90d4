import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Adds the versions from which entity tags are derived (contract 10.1). A trigger gives a row a new one at each update,
 * whoever makes it: another release and psql as well. Versions are random rather than counted, because a count would
 * repeat after a backup is restored, for another content. Rows that exist already share the version 0, so none of them
 * is rewritten; versions of different rows are never compared.
 */
export async function addRowVersions (db: Kysely<Tables>, schema: string): Promise<void> {
  // Such a trigger returns the row, so `createTrigger` does not fit.
  await sql`
    create function ${sql.id(schema, 'renew_row_version')}() returns trigger language plpgsql as $$
    begin
      new.row_version := uuid_hash_extended(gen_random_uuid(), 0);
      return new;
    end $$`.execute(db)
  for (const table of ['users', 'posts', 'uploads'] as const) {
    await db.schema.alterTable(table)
      .addColumn('row_version', 'bigint', (column) => column.notNull().defaultTo(0)).execute()
    await db.schema.alterTable(table)
      .alterColumn('row_version', (column) => column.setDefault(sql`uuid_hash_extended(gen_random_uuid(), 0)`))
      .execute()
    await sql`
      create trigger renew_row_version before update on ${sql.id(schema, table)}
      for each row execute function ${sql.id(schema, 'renew_row_version')}()`.execute(db)
  }
}
