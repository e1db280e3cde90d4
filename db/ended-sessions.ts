import { sql } from 'kysely'
import { actorValue, storing } from './outbox/store.ts'
import { endedData, seconds } from './sessions.ts'
import type { Database } from './tables.ts'

/** Returns the sessions that ended within the last `within` seconds, oldest first. `age` is the seconds since then, by the database. */
export async function listEndedSessions (db: Database, within: number): Promise<{ id: string, age: number }[]> {
  return db.selectFrom('ended_sessions')
    .select(['id', sql<number>`extract(epoch from now() - ended_at)::float8`.as('age')])
    .where('ended_at', '>=', sql<Date>`now() - ${seconds(within)}`)
    .orderBy('ended_at').execute()
}

/** Deletes at most `limit` expired sessions, except those that another node is deleting. Returns the number of deleted sessions. */
export async function deleteExpiredSessions (db: Database, limit: number): Promise<number> {
  const statement = db.with('ended', (cte) => cte.deleteFrom('sessions').where('id', 'in', ({ selectFrom }) =>
    selectFrom('sessions').select('id').where('expires_at', '<=', sql<Date>`now()`).limit(limit).forUpdate().skipLocked()).returning(['id', 'user_id']))
  const { count } = await storing(statement, db, 'session.ended', { from: 'ended', ...endedData(actorValue(null)) })
    .selectFrom('ended').select(({ fn }) => fn.countAll().as('count')).executeTakeFirstOrThrow()
  return Number(count)
}

/**
 * Deletes at most `limit` records of sessions that ended more than `secondsAgo` seconds ago, except those that another node is
 * deleting. Returns the number of deleted records.
 */
export async function deleteEndedSessions (db: Database, secondsAgo: number, limit: number): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('ended_sessions').where('id', 'in', ({ selectFrom }) =>
    selectFrom('ended_sessions').select('id').where('ended_at', '<', sql<Date>`now() - ${seconds(secondsAgo)}`).limit(limit).forUpdate().skipLocked()).executeTakeFirst()
  return Number(numDeletedRows)
}
