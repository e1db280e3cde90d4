import { sql } from 'kysely'
import type { Migration } from './migration.ts'

/** What lists of posts need (contract 22). */
export const postLists: Migration = {
  indexes: (schema) => {
    const posts = sql.id(schema, 'posts')
    return [
      // Lists of posts since a time find there where they end.
      { name: 'posts_created', on: sql`${posts} (created_at, position)` },
    ]
  },
}
