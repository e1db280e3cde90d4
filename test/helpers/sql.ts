import postgres, { type Sql } from 'postgres'
import type { Test } from 'tap'
import type { TestUsher } from './app.ts'

/** A connection to what a test's Usher keeps, with its Postgres schema as the default one; closed by the test's end. */
export function openSql (t: Test, { options }: Pick<TestUsher, 'options'>): Sql {
  const sql = postgres(options.databaseUrl!, { max: 2, onnotice: () => {}, connection: { search_path: options.schema! } })
  t.teardown(() => sql.end({ timeout: 1 }))
  return sql
}
