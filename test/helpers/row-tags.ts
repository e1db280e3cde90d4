import type { Sql } from 'postgres'
import { entityTag } from '../../schema/http/entity-tag.ts'

/** Returns the entity tag of a row, as far as it depends on the row. */
export async function tagOfRow (sql: Sql, table: 'users' | 'posts', id: string): Promise<string> {
  const [row] = await sql`select row_version::text as version from ${sql(table)} where id = ${id}`
  return entityTag(row!['version'])
}
