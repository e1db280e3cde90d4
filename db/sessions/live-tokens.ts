import { sql, type SqlBool } from 'kysely'
import { prepare } from '../driver/postgres.ts'
import type { Database } from '../tables/index.ts'

/**
 * A session, and the signing key of one of its tokens: `<id> <kid>`. A text, so that equal keys share one read of a
 * batch.
 */
export type TokenKey = `${string} ${string}`

/** The token of an actor, on whose behalf something is written. */
export interface WriterToken {
  readonly sessionId: string
  /** The id of the key that signed it. */
  readonly kid: string
  /** When it expires, in milliseconds since 1970. */
  readonly expires: number
}

/** Returns a time in milliseconds since 1970, or `Infinity`, as PostgreSQL reads it. */
export const toTimestamp = (milliseconds: number) =>
  milliseconds === Infinity ? 'infinity' : new Date(milliseconds).toISOString()

const selectLive = prepare((db, ids: readonly string[], kids: readonly string[], expiries: readonly string[]) => db
  .selectFrom(sql<{ session: string, kid: string, expires: string, place: string }>`unnest(
    ${ids}::uuid[], ${kids}::text[], ${expiries}::timestamptz[]
  ) with ordinality`.as<'token'>(sql`token(session, kid, expires, place)`))
  .innerJoin('sessions', 'sessions.id', 'token.session').innerJoin('signing_keys', 'signing_keys.id', 'token.kid')
  .where('sessions.expires_at', '>', sql<Date>`now()`)
  .where(sql<SqlBool>`token.expires > clock_timestamp()`).select('place'))

/**
 * Returns which tokens are live, in their order: whether the token has not expired, its session has not ended and its
 * key has not been revoked.
 */
export async function areLiveTokens (db: Database, tokens: readonly WriterToken[]): Promise<boolean[]> {
  const expiries = tokens.map(({ expires }) => toTimestamp(expires))
  const rows = await selectLive(db, tokens.map(({ sessionId }) => sessionId), tokens.map(({ kid }) => kid), expiries)
  const live = new Set(rows.map(({ place }) => Number(place)))
  return tokens.map((_, index) => live.has(index + 1))
}

/** Returns which tokens are live, whenever they expire, in their order: `true` if one is. */
export async function findLiveTokens (db: Database, keys: readonly TokenKey[]): Promise<(true | undefined)[]> {
  const tokens = keys.map((key) => {
    const [sessionId, kid] = key.split(' ') as [string, string]
    return { sessionId, kid, expires: Infinity }
  })
  return (await areLiveTokens(db, tokens)).map((isLive) => isLive || undefined)
}
