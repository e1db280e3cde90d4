import postgres, { type Sql } from 'postgres'
import type { Test } from 'tap'
import type { TestUsher } from './app.ts'
import { socketOf } from './database.ts'
import { until } from './until.ts'

/**
 * Opens up to `max` connections to the database of a test's Usher, with its schema as the default one. They are closed
 * when the test ends.
 */
export function openSql (t: Test, { options }: Pick<TestUsher, 'options'>, max = 2): Sql {
  const { databaseUrl, schema } = options
  const sql = postgres(databaseUrl!, {
    ...socketOf(databaseUrl!), max, onnotice: () => {}, connection: { search_path: schema! },
  })
  t.teardown(() => sql.end({ timeout: 1 }))
  return sql
}

/** Waits until a statement of a test's Usher waits for a lock. Throws after a minute. */
export async function untilBlocked (sql: Sql, { options }: Pick<TestUsher, 'options'>): Promise<void> {
  await until('a statement waits for a lock', async () =>
    (await sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like ${`%"${options.schema!}"%`}`).length > 0)
}
