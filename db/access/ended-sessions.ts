import { sql, type SelectQueryBuilder } from 'kysely'
import type { AuditAction } from '../../schema/audit/audit.ts'
import { anyOf, ctid } from '../driver/postgres.ts'
import { deleteExpired, placesOfExpired } from '../batching/delete-expired.ts'
import { actorAuditColumns, type AuditContext } from '../audit/audit.ts'
import { entryColumns, withEntryEvents } from '../audit/events.ts'
import { newId } from '../driver/ids.ts'
import { replanned } from '../driver/replanned.ts'
import { actorValue, sessionEndOf, withEvents } from '../outbox/store.ts'
import { seconds } from './sessions.ts'
import type { Database, Tables } from '../tables/index.ts'

/** The data for the account log about the end of a session. */
export interface EndContext extends Omit<AuditContext, 'sessionId' | 'keyId'> {
  action: AuditAction
  /**
   * Whether the actor is the session's user instead of `actorId`. For requests with only a cookie, the actor is not
   * known before.
   */
  byUser?: boolean
  /** The API key with which the actor ends it, if that is how. */
  keyId?: string | null
}

/**
 * Ends a session and those that were opened with its tokens, and writes the end of the session to the account log, as
 * one statement. If `secretHash` is passed, it must be that of the session. Returns the ids of the ended sessions: none
 * if there was no such session.
 */
export async function deleteSession (
  db: Database, { id, secretHash }: { id: string, secretHash?: Uint8Array }, note: EndContext
): Promise<string[]> {
  const { action, actorId, keyId = null, byUser = false, address, userAgent } = note
  const statement = db
    .with('named', (cte) => cte.deleteFrom('sessions').where('id', '=', id)
      .$if(secretHash !== undefined, (query) => query.where('secret_hash', '=', secretHash!))
      .returning(['id', 'user_id']))
    .with('derived', (cte) => cte.deleteFrom('sessions')
      .where('parent_id', '=', ({ selectFrom }) => anyOf(selectFrom('named').select('id'))).returning(['id', 'user_id']))
    .with('ended', (cte) => cte.selectFrom('named').select(['id', 'user_id'])
      .unionAll(cte.selectFrom('derived').select(['id', 'user_id'])))
    .with('noted', (cte) => cte.insertInto('audit').columns(actorAuditColumns)
      .expression(({ selectFrom, val }) => selectFrom('named').select(({ ref }) => [
        val(newId(db)).as('entry'), val(action).as('action'),
        byUser ? ref('user_id').as('actor') : val(actorId).as('actor'), 'user_id as user', 'named.id as session',
        val(address).as('address'), val(userAgent).as('agent'), val(keyId).as('key'),
      ])).returning(entryColumns))
  const actor = byUser ? 'ended.user_id' : actorValue(actorId)
  const noted = withEntryEvents(statement, db, ['noted'])
  const rows = await withEvents(noted, db, 'session.ended', { from: 'ended', ...sessionEndOf(actor) })
    .selectFrom('ended').select('id').execute()
  return rows.map(({ id }) => id)
}

/**
 * Ends the sessions of a user, except for `except` if it is passed and was not opened with a token of another one.
 * Returns the ids of the ended sessions.
 * @param actorId the user who ends them; null if it is the operator
 */
export async function deleteSessionsOf (
  db: Database, userId: string, actorId: string | null, except?: string
): Promise<string[]> {
  const statement = db
    .with('found', (cte) => inLockOrder(cte.selectFrom('sessions').select('id').where('user_id', '=', userId)
      .$if(except !== undefined, (query) => query.where('id', '<>', except!))))
    .with('ended', (cte) => cte.deleteFrom('sessions')
      .where('id', '=', ({ selectFrom }) => anyOf(selectFrom('found').select('id'))).returning(['id', 'user_id']))
  const rows = await withEvents(statement, db, 'session.ended', { from: 'ended', ...sessionEndOf(actorValue(actorId)) })
    .selectFrom('ended').select('id').execute()
  return rows.map(({ id }) => id)
}

// The end of a session waits for the rows of those that were opened with its tokens. Statements that end both lock them
// in the same order, so that two of them cannot cause a deadlock.
const inLockOrder = <Query extends SelectQueryBuilder<Tables, 'sessions', { id: string }>> (query: Query) =>
  query.orderBy(sql`parent_id is not null`).orderBy('id').forUpdate()

/** Ends every session of every user. Returns the number of ended sessions. */
export async function deleteAllSessions (db: Database): Promise<number> {
  const statement = db.with('found', (cte) => inLockOrder(cte.selectFrom('sessions').select('id')))
    .with('ended', (cte) => cte.deleteFrom('sessions')
      .where('id', '=', ({ selectFrom }) => anyOf(selectFrom('found').select('id'))).returning(['id', 'user_id']))
  const query = withEvents(statement, db, 'session.ended', { from: 'ended', ...sessionEndOf(actorValue(null)) })
  const { count } = await query.selectFrom('ended').select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/**
 * Returns the sessions that ended within the last `within` seconds, oldest first. `age` is the seconds since then, by
 * the database.
 */
export async function listEndedSessions (db: Database, within: number): Promise<{ id: string, age: number }[]> {
  return db.selectFrom('ended_sessions')
    .select(['id', sql<number>`extract(epoch from now() - ended_at)::float8`.as('age')])
    .where('ended_at', '>=', sql<Date>`now() - make_interval(secs => ${sql.lit(within)})`)
    .orderBy('ended_at').execute()
}

/**
 * Deletes at most `limit` expired sessions, except those that another node is deleting, and those that were opened with
 * their tokens. Returns the number of deleted sessions.
 */
export async function deleteExpiredSessions (db: Database, limit: number): Promise<number> {
  const statement = replanned(db)
    .with('expired', (cte) => cte.deleteFrom('sessions')
      .where(ctid, '=', placesOfExpired(db, 'sessions', { column: 'expires_at', limit })).returning(['id', 'user_id']))
    .with('derived', (cte) => cte.deleteFrom('sessions')
      .where('parent_id', '=', ({ selectFrom }) => anyOf(selectFrom('expired').select('id'))).returning(['id', 'user_id']))
    .with('ended', (cte) => cte.selectFrom('expired').select(['id', 'user_id'])
      .unionAll(cte.selectFrom('derived').select(['id', 'user_id'])))
  const { count } = await withEvents(
    statement, db, 'session.ended', { from: 'ended', ...sessionEndOf(actorValue(null)) }
  )
    .selectFrom('ended').select(({ fn }) => fn.countAll().as('count')).executeTakeFirstOrThrow()
  return Number(count)
}

/**
 * Deletes at most `limit` records of sessions that ended more than `secondsAgo` seconds ago, except those that another
 * node is deleting. Returns the number of deleted records.
 */
export function deleteEndedSessions (db: Database, secondsAgo: number, limit: number): Promise<number> {
  return deleteExpired(db, 'ended_sessions', { column: 'ended_at', until: sql`now() - ${seconds(secondsAgo)}`, limit })
}
