import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Creates a function and a trigger that runs it for each row or statement.
 * @param when the time and the event, for example `after insert`
 * @param body the statements of the function in PL/pgSQL
 */
export async function createTrigger (
  db: Kysely<Tables>, schema: string, table: string, when: string, name: string, body: ReturnType<typeof sql>,
  each: 'row' | 'statement' = 'row'
): Promise<void> {
  await sql`
    create function ${sql.id(schema, name)}() returns trigger language plpgsql as $$
    begin
      ${body};
      return null;
    end $$`.execute(db)
  await sql`
    create trigger ${sql.id(name)} ${sql.raw(when)} on ${sql.id(schema, table)}
    for each ${sql.raw(each)} execute function ${sql.id(schema, name)}()`.execute(db)
}
