import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Sets `ended_at` to the time when the session's row is deleted, rather than to the start of that transaction, because
 * nodes read the sessions that ended within the lifetime of a token.
 */
export async function timeEndedSessions (db: Kysely<Tables>): Promise<void> {
  await db.schema.alterTable('ended_sessions')
    .alterColumn('ended_at', (column) => column.setDefault(sql`clock_timestamp()`)).execute()
}
