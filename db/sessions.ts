import { sql } from 'kysely'
import type { SelectType } from 'kysely'
import { v7 as uuid } from 'uuid'
import { InvalidCredentials } from '../schema/errors.ts'
import type { Role } from '../schema/user.ts'
import type { Database, SessionsTable } from './tables.ts'

export interface NewSession {
  userId: string
  secretHash: Uint8Array
  rotationKey: Uint8Array
  address: string
  userAgent: string
  expiresAt: SelectType<SessionsTable['expires_at']>
}

/**
 * Opens a session: its id, and the role that its user has by now. The user's row is locked meanwhile, so that a
 * demotion or a deletion comes either before this or finds the session to end. Throws `InvalidCredentials` for a
 * user who was deleted a moment ago.
 */
export async function insertSession (db: Database, session: NewSession): Promise<{ id: string, role: Role }> {
  return db
    .with('owner', (cte) => cte.selectFrom('users').select(['id', 'role']).where('id', '=', session.userId).forShare())
    .insertInto('sessions')
    .columns(['id', 'user_id', 'secret_hash', 'rotation_key', 'address', 'user_agent', 'expires_at'])
    .expression(({ selectFrom, val }) => selectFrom('owner').select([
      val(uuid()).as('session'), 'owner.id', val(session.secretHash).as('secret'), val(session.rotationKey).as('rotation'),
      val(session.address).as('address'), val(session.userAgent).as('agent'), val(session.expiresAt).as('expires'),
    ]))
    .returning(['id', ({ selectFrom }) => selectFrom('owner').select('role').$asScalar().$notNull().as('role')])
    .executeTakeFirstOrThrow(() => new InvalidCredentials())
}

/** Ends a session, by its id or by the hash of its secret: its id, or none where it had ended already. */
export async function deleteSession (db: Database, session: { id: string } | { secretHash: Uint8Array }): Promise<string[]> {
  const rows = await db.deleteFrom('sessions')
    .where(({ eb }) => 'id' in session ? eb('id', '=', session.id) : eb('secret_hash', '=', session.secretHash))
    .returning('id').execute()
  return rows.map(({ id }) => id)
}

/** Ends all sessions of a user: their ids. */
export async function deleteSessionsOf (db: Database, userId: string): Promise<string[]> {
  const rows = await db.deleteFrom('sessions').where('user_id', '=', userId).returning('id').execute()
  return rows.map(({ id }) => id)
}

/** Which of some sessions are alive, in their order: `true` or `undefined`. */
export async function findLiveSessions (db: Database, ids: readonly string[]): Promise<(true | undefined)[]> {
  const rows = await db.selectFrom('sessions').select('id')
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .where('expires_at', '>', sql<Date>`now()`)
    .execute()
  const alive = new Set(rows.map((row) => row.id))
  return ids.map((id) => alive.has(id) || undefined)
}

/** The sessions that ended within the last seconds, oldest first; those before are forgotten for good. */
export async function listEndedSessions (db: Database, seconds: number): Promise<{ id: string, endedAt: Date }[]> {
  const since = sql<Date>`now() - make_interval(secs => ${seconds})`
  await db.deleteFrom('ended_sessions').where('ended_at', '<', since).execute()
  return db.selectFrom('ended_sessions').select(['id', 'ended_at as endedAt']).orderBy('ended_at').execute()
}
