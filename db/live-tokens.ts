import { sql } from 'kysely'
import type { Database } from './tables.ts'

/** A session, and the signing key of one of its tokens: `<id> <kid>`. A text, so that equal keys share one read of a batch. */
export type TokenKey = `${string} ${string}`

/** Returns which tokens are live, in their order: `true` if the session has not ended and the key has not been revoked. */
export async function findLiveTokens (db: Database, keys: readonly TokenKey[]): Promise<(true | undefined)[]> {
  const [ids, kids] = [keys.map((key) => key.split(' ')[0]!), keys.map((key) => key.split(' ')[1]!)]
  const rows = await db.selectFrom('sessions')
    .innerJoin(sql<{ id: string, kid: string }>`unnest(${ids}::uuid[], ${kids}::text[])`.as<'tokens'>(sql`tokens(id, kid)`), 'tokens.id', 'sessions.id')
    .innerJoin('signing_keys', 'signing_keys.id', 'tokens.kid')
    .where('sessions.expires_at', '>', sql<Date>`now()`)
    .select(['tokens.id', 'tokens.kid']).execute()
  const live = new Set(rows.map(({ id, kid }) => `${id} ${kid}`))
  return keys.map((key) => live.has(key) || undefined)
}
