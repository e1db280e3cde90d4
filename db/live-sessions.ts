import { expressionBuilder, sql, type RawBuilder, type SqlBool } from 'kysely'
import postgres from 'postgres'
import { InvalidToken } from '../schema/auth.ts'
import { schemaOf } from './driver/schema-of.ts'
import { prepare } from './postgres.ts'
import type { Database, Tables } from './tables.ts'

// A write may wait behind others on its connection when its session ends, and is then executed after the end was acknowledged. So
// permission is checked once more by the statement itself (contract 1.12): when it begins, and when it has written, because it may
// have waited for locks.

const ENDED = 'UE401'

type SessionId = string | null | undefined

const { selectFrom, exists } = expressionBuilder<Tables, never>()

const isAmong = (ids: ReturnType<typeof sql<string>>) => selectFrom('sessions').select('sessions.id').where('sessions.id', '=', ids)

/**
 * Returns a condition: the session in a column of the rows `given` has not ended when PostgreSQL begins the statement. It holds if there is
 * no session, because the host acts. PostgreSQL looks up all sessions once for each statement.
 */
export const hasLiveSession = (column: string) => sql<boolean>`(${sql.ref(`given.${column}`)} is null
  or ${sql.ref(`given.${column}`)} in ${isAmong(sql<string>`any(array(select ${sql.ref(column)} from given))`)})`

/** Returns the same condition for a statement of one session. */
export const isLiveSession = (id: SessionId) => id == null ? sql<SqlBool>`true` : exists(isAmong(sql<string>`${id}`))

/**
 * Returns a condition for the last query of a statement, which fails if a session of a written row has ended. Run the statement by
 * `writeWhileLive`.
 * @param from SQL of the common table expressions with the written rows
 * @param session SQL of the session of a row
 */
export const confirmSessions = (db: Database, from: string, session: string | RawBuilder<unknown>) =>
  sql<boolean>`(select ${sql.id(schemaOf(db), 'require_live_sessions')}(array(
    select ${typeof session === 'string' ? sql.raw(session) : session} from ${sql.raw(from)})))`

/** Returns the same condition for a statement of one session. It is always true without a session. */
export const confirmSession = (db: Database, from: string, id: SessionId) =>
  id == null ? sql<boolean>`true` : confirmSessions(db, from, sql`${id}::uuid`)

/**
 * Runs a statement with `confirmSessions` again if it fails, because it does not write for sessions that have ended before it begins. In
 * a transaction, which has failed as well, throws `InvalidToken`.
 */
export async function writeWhileLive<Result> (db: Database, run: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await run()
    } catch (error) {
      if (!(error instanceof postgres.PostgresError && error.code === ENDED)) throw error
      if (db.isTransaction) throw new InvalidToken()
    }
  }
}

const selectSessions = prepare((db, ids: readonly string[]) =>
  db.selectFrom('sessions').select('id').where('id', '=', sql<string>`any(${ids}::uuid[])`))

/** Returns those of the sessions that have ended, to find why writes were not made. */
export async function findEndedSessions (db: Database, ids: readonly SessionId[]): Promise<ReadonlySet<SessionId>> {
  const ended = new Set(ids.filter((id) => id != null))
  if (ended.size === 0) return ended
  for (const { id } of await selectSessions(db, [...ended])) ended.delete(id)
  return ended
}

/** Returns whether each session has not ended, in their order. */
export async function areLive (db: Database, ids: readonly string[]): Promise<boolean[]> {
  const ended = await findEndedSessions(db, ids)
  return ids.map((id) => !ended.has(id))
}

/** Throws `InvalidToken` if a session has ended. Call it when a statement with `isLiveSession` has written nothing. */
export async function requireLiveSession (db: Database, id: SessionId): Promise<void> {
  if ((await findEndedSessions(db, [id])).has(id)) throw new InvalidToken()
}
