import { sql } from 'kysely'
import type { Migration } from './migration.ts'

/** What lists of posts need (contract 22). */
export const postLists: Migration = {
  // Lists of posts since a time find there where they end.
  indexes: (schema) => [{ name: 'posts_created', on: sql`${sql.id(schema, 'posts')} (created_at, position)` }],
}
