import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables.ts'

/**
 * A session ends when its row is deleted, and not when the transaction that deletes it began: nodes ask for those that ended
 * within the life of a token.
 */
export async function timeEndedSessions (db: Kysely<Tables>): Promise<void> {
  await db.schema.alterTable('ended_sessions').alterColumn('ended_at', (column) => column.setDefault(sql`clock_timestamp()`)).execute()
}
