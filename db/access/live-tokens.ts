import { sql, type SqlBool } from 'kysely'
import { prepare } from '../driver/postgres.ts'
import type { Database } from '../tables/index.ts'

/**
 * A session or an API key, the signing key of one of the session's tokens, and the membership for which the token was
 * issued: `<id> <kid> <membership>`, where the last two may be empty. A text, so that equal keys share one read of a
 * batch.
 */
export type TokenKey = `${string} ${string} ${string}`

/** The token or the API key of an actor, on whose behalf something is written. */
export interface WriterToken {
  /** The id of the session, or of the API key, which takes its place. */
  readonly id: string
  /** The id of the signing key of a token; empty for an API key. */
  readonly kid: string
  /** When it expires, in milliseconds since 1970, or `Infinity`. */
  readonly expires: number
  /**
   * The membership for which a token was issued, whose end is the end of the token (contract 19.3); or that of an API
   * key, which is deleted with it.
   */
  readonly membershipId?: string | undefined
}

/** Returns a time in milliseconds since 1970, or `Infinity`, as PostgreSQL reads it. */
export const toTimestamp = (milliseconds: number) =>
  milliseconds === Infinity ? 'infinity' : new Date(milliseconds).toISOString()

interface LiveParameters extends Record<'ids' | 'kids' | 'expiries', readonly string[]> {
  memberships: readonly (string | null)[]
}

type Given = Record<'session' | 'kid' | 'expires' | 'place', string> & { membership: string | null }

const selectLive = prepare((db, { ids, kids, expiries, memberships }: LiveParameters) => db
  .selectFrom(sql<Given>`unnest(
    ${ids}::uuid[], ${kids}::text[], ${expiries}::timestamptz[], ${memberships}::uuid[]
  ) with ordinality`.as<'token'>(sql`token(session, kid, expires, membership, place)`))
  .leftJoin('sessions', 'sessions.id', 'token.session').leftJoin('signing_keys', 'signing_keys.id', 'token.kid')
  .leftJoin('api_keys', 'api_keys.id', 'token.session').leftJoin('memberships', 'memberships.id', 'token.membership')
  .where(sql<SqlBool>`(sessions.expires_at > now() and signing_keys.id is not null
    or api_keys.id is not null and coalesce(api_keys.expires_at > now(), true))`)
  .where(sql<SqlBool>`(token.membership is null or memberships.id is not null)`)
  .where(sql<SqlBool>`token.expires > clock_timestamp()`).select('place'))

/**
 * Returns which tokens and API keys are live, in their order: whether the token has not expired, its session and its
 * membership have not ended and its signing key has not been revoked; whether the API key exists and has not expired.
 */
export async function areLiveTokens (db: Database, tokens: readonly WriterToken[]): Promise<boolean[]> {
  const rows = await selectLive(db, {
    ids: tokens.map(({ id }) => id),
    kids: tokens.map(({ kid }) => kid),
    expiries: tokens.map(({ expires }) => toTimestamp(expires)),
    memberships: tokens.map(({ membershipId = null }) => membershipId),
  })
  const live = new Set(rows.map(({ place }) => Number(place)))
  return tokens.map((_, index) => live.has(index + 1))
}

/** Returns which tokens are live, whenever they expire, in their order: `true` if one is. */
export async function findLiveTokens (db: Database, keys: readonly TokenKey[]): Promise<(true | undefined)[]> {
  const tokens = keys.map((key) => {
    const [id, kid, membershipId] = key.split(' ') as [string, string, string]
    return { id, kid, membershipId: membershipId || undefined, expires: Infinity }
  })
  return (await areLiveTokens(db, tokens)).map((isLive) => isLive || undefined)
}
