import { expressionBuilder, sql, type RawBuilder, type SqlBool } from 'kysely'
import postgres from 'postgres'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import { schemaOf, prepare } from '../driver/postgres.ts'
import { areLiveTokens, toTimestamp, type WriterToken } from './live-tokens.ts'
import type { Database, Tables } from '../tables/index.ts'

// What this file says of sessions also holds for API keys, which take the place of a session, and for the membership of
// a token for an organisation, which must not have ended either (contract 19.3).

// A write may wait behind others on its connection when its session ends, and is then executed after the end was
// acknowledged. So permission is checked once more by the statement itself (contract 1.12): when it begins, and when it
// has written, because it may have waited for locks. By then, its token may also have expired or lost its signing key.

const ENDED = 'UE401'

type SessionId = string | null | undefined

/** What a token ends with: its session, or the API key, and the membership, if it has one. */
export type TokenIds = Pick<WriterToken, 'id' | 'membershipId'>

/** A token, or null if the host writes. */
type Writer = WriterToken | null | undefined

type Sql = string | RawBuilder<unknown>

const toSql = (given: Sql) => typeof given === 'string' ? sql.raw(given) : given

const { selectFrom, exists, and } = expressionBuilder<Tables, never>()

const among = sql<string>`any(array(select id from given))`

const isAmong = (ids: ReturnType<typeof sql<string>>) =>
  selectFrom('sessions').select('sessions.id').where('sessions.id', '=', ids)
    .unionAll(selectFrom('api_keys').select('api_keys.id').where('api_keys.id', '=', ids))

/**
 * Returns a condition: the session in a column of the rows `given` has not ended when PostgreSQL begins the statement.
 * It holds if there is no session, because the host acts. PostgreSQL looks up all sessions once for each statement.
 */
export const hasLiveSession = (column: string) => sql<boolean>`(${sql.ref(`given.${column}`)} is null
  or ${sql.ref(`given.${column}`)} in ${isAmong(sql<string>`any(array(select ${sql.ref(column)} from given))`)})`

/**
 * Returns the same condition for the membership in a column. It holds if there is none. Statements that end with
 * `confirmSessions` do not need it.
 */
export const hasLiveMembership = (column: string) => sql<boolean>`(${sql.ref(`given.${column}`)} is null
  or ${sql.ref(`given.${column}`)} in ${isMembership(sql<string>`any(array(select ${sql.ref(column)} from given))`)})`

const isMembership = (ids: ReturnType<typeof sql<string>>) =>
  selectFrom('memberships').select('memberships.id').where('memberships.id', '=', ids)

/** Returns the same condition for a statement of one token. */
export function isLiveSession (writer: Writer) {
  if (!writer) return sql<SqlBool>`true`
  const isLive = exists(isAmong(sql<string>`${writer.id}`))
  const { membershipId } = writer
  return membershipId === undefined ? isLive : and([isLive, exists(isMembership(sql<string>`${membershipId}`))])
}

/**
 * Returns a condition for the last query of a statement, which fails if a session of a written row has ended, or if one
 * of the tokens has expired or lost its key. Run the statement by `isolateEnded` or `rejectEnded`.
 * @param from SQL of the common table expressions with the written rows
 * @param session SQL of the session of a row
 * @param writers the tokens, with memberships, unless the transaction checks them at its end
 */
export function confirmSessions (db: Database, from: Sql, session: Sql, writers: readonly Writer[] = []) {
  const tokens = writers.filter((writer) => writer != null)
  const memberships = tokens.flatMap(({ membershipId = [] }) => membershipId)
  const written = sql`array(select ${toSql(session)} from ${toSql(from)})`
  const sessions = memberships.length === 0 ? written : sql`${written} || ${memberships}::uuid[]`
  const requireLive = sql.id(schemaOf(db), 'require_live_sessions')
  // Without parameters, because prepared statements have only those that they are called with.
  if (tokens.length === 0) return sql<boolean>`(select ${requireLive}(${sessions}, '{}', 'infinity'))`
  const kids = [...new Set(tokens.map(({ kid }) => kid).filter((kid) => kid !== ''))]
  const until = toTimestamp(Math.min(...tokens.map(({ expires }) => expires)))
  return sql<boolean>`(select ${requireLive}(${sessions}, ${kids}::text[], ${until}::timestamptz))`
}

/** Returns the SQL of a row for each id with which a token ends, for `confirmSessions`. */
export const idsOf = ({ id, membershipId }: TokenIds) =>
  sql`unnest(${membershipId === undefined ? [id] : [id, membershipId]}::uuid[])`

/** Returns the same condition for a statement of one token. It is always true without one. */
export const confirmSession = (db: Database, from: Sql, writer: Writer) =>
  writer ? confirmSessions(db, from, sql`${writer.id}::uuid`, [writer]) : sql<boolean>`true`

/** Runs a statement of one session with the condition of `confirmSession`. Throws `InvalidToken` if that fails. */
export async function rejectEnded<Result> (run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    throw isEnded(error) ? new InvalidToken() : error
  }
}

/**
 * Runs a statement of several writes with the condition of `confirmSessions`. If that fails, nothing was written, and
 * those that are still permitted are sent again. The others yield `InvalidToken`, which this throws in a transaction,
 * because that has failed as well.
 * @param run returns the result or the error of each write, in the same order
 */
export async function isolateEnded<Item extends { token?: Writer }, Result> (
  db: Database, items: readonly Item[], run: (items: readonly Item[]) => Promise<(Result | Error)[]>
): Promise<(Result | Error)[]> {
  try {
    return await run(items)
  } catch (error) {
    if (!isEnded(error)) throw error
    if (db.isTransaction) throw new InvalidToken()
  }
  const live = await findLive(db, items.map(({ token }) => token))
  const permitted = items.filter(({ token }) => live.has(token))
  const results = permitted.length === 0 ? [] : await isolateEnded(db, permitted, run)
  return items.map(({ token }) => live.has(token) ? results.shift()! : new InvalidToken())
}

const isEnded = (error: unknown) => error instanceof postgres.PostgresError && error.code === ENDED

// Returns those who may still write.
async function findLive (db: Database, writers: readonly Writer[]): Promise<ReadonlySet<Writer>> {
  const tokens = [...new Set(writers.filter((writer) => writer != null))]
  const live = await areLiveTokens(db, tokens)
  return new Set<Writer>([null, undefined, ...tokens.filter((_, index) => live[index])])
}

const selectSessions = prepare((db, { ids }: { ids: readonly string[] }) => db
  .with('given', (cte) => cte.selectFrom(sql<{ id: string }>`unnest(${ids}::uuid[])`.as<'asked'>(sql`asked(id)`))
    .select('asked.id'))
  .selectFrom('sessions').select('sessions.id').where('sessions.id', '=', among)
  .unionAll(db.selectFrom('api_keys').select('api_keys.id').where('api_keys.id', '=', among))
  .unionAll(db.selectFrom('memberships').select('memberships.id').where('memberships.id', '=', among)))

/** Returns those of the sessions and memberships that have ended, to find why writes were not made. */
export async function findEndedSessions (db: Database, ids: readonly SessionId[]): Promise<ReadonlySet<SessionId>> {
  const ended = new Set(ids.filter((id) => id != null))
  if (ended.size === 0) return ended
  for (const { id } of await selectSessions(db, { ids: [...ended] })) ended.delete(id)
  return ended
}

/** Returns whether each session or membership has not ended, in their order. */
export async function areLive (db: Database, ids: readonly string[]): Promise<boolean[]> {
  const ended = await findEndedSessions(db, ids)
  return ids.map((id) => !ended.has(id))
}

/**
 * Throws `InvalidToken` if the session or the membership of a token has ended. Call it when a statement with
 * `isLiveSession` has written nothing.
 */
export async function requireLiveSession (db: Database, token: TokenIds | null | undefined): Promise<void> {
  if (token && (await findEndedSessions(db, [token.id, token.membershipId])).size > 0) throw new InvalidToken()
}

/** Returns whether a session of a user is live, and keeps it from ending until the transaction ends. */
export async function holdSession (
  trx: Database, { userId, sessionId }: { userId: string, sessionId: string }
): Promise<boolean> {
  const row = await trx.selectFrom('sessions').select('id').where('id', '=', sessionId).where('user_id', '=', userId)
    .where('expires_at', '>', sql<Date>`clock_timestamp()`).forKeyShare().executeTakeFirst()
  return row !== undefined
}
