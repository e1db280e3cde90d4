import { sql } from 'kysely'
import { NIL } from 'uuid'
import { decryptWithAny, encrypt, tryDecrypt, type Secrets } from '../encryption.ts'
import { isUuid } from '../../driver/postgres.ts'
import type { Database } from '../../tables/index.ts'

// A statement that runs longer would delay others.
const BATCH_SIZE = 500

/** The tokens of a provider, with which the host acts for the user there. */
export interface ProviderTokens {
  accessToken: string
  refreshToken?: string | undefined
  /** What the access token permits, as the provider says it. */
  scope?: string | undefined
  /** When the access token expires, in milliseconds since 1970. */
  expiresAt?: number | undefined
}

// Tokens are authenticated with their identity, so that nobody who can write to the table moves them to another one
// unnoticed.
const nameOf = (id: string) => `identity ${id}`

/** Returns tokens as they are stored for an identity. */
export const sealTokens = (secret: string, id: string, tokens: ProviderTokens): string =>
  encrypt(secret, nameOf(id), JSON.stringify(tokens), 'provider tokens')

/** Returns the stored tokens of an identity. Throws an error that names the option if that is missing or wrong. */
export function openTokens (secrets: Secrets, id: string, stored: string): ProviderTokens {
  try {
    return JSON.parse(decryptWithAny(secrets, nameOf(id), stored, 'provider tokens').text) as ProviderTokens
  } catch (cause) {
    throw new Error('usher: secret must be the one that the tokens of providers are encrypted with', { cause })
  }
}

/** Returns the stored tokens of an identity of a user; null if there are none, undefined if there is no identity. */
export async function findTokens (db: Database, userId: string, id: string): Promise<string | null | undefined> {
  if (!isUuid(id) || !isUuid(userId)) return undefined
  const row = await db.selectFrom('identities').select('tokens').where('id', '=', id).where('user_id', '=', userId)
    .executeTakeFirst()
  return row?.tokens
}

/** What `reencryptTokens` has done. */
export interface ReencryptedTokens {
  /** Identities whose tokens are encrypted anew. */
  encrypted: number
  /** Identities whose tokens neither secret of the node opens. */
  unreadable: number
}

/**
 * Encrypts the tokens of all identities with the secret of the node that only the former secret opens. If it is
 * interrupted, the next call does the rest.
 */
export async function reencryptTokens (
  db: Database, secrets: Secrets & { secret: string }
): Promise<ReencryptedTokens> {
  const done = { encrypted: 0, unreadable: 0 }
  let after: string = NIL
  while (true) {
    const rows = await db.selectFrom('identities').select(['id', 'tokens']).where('id', '>', after)
      .where('tokens', 'is not', null).$narrowType<{ tokens: string }>().orderBy('id').limit(BATCH_SIZE).execute()
    const changes = rows.flatMap(({ id, tokens }) => {
      const opened = tryDecrypt(secrets, nameOf(id), tokens, 'provider tokens')
      if (!opened) done.unreadable++
      return opened?.isFormer
        ? [{ id, from: tokens, to: encrypt(secrets.secret, nameOf(id), opened.text, 'provider tokens') }]
        : []
    })
    // Tokens that were replaced meanwhile are encrypted already.
    if (changes.length > 0) {
      await db.updateTable('identities').from(sql<{ id: string, former: string, next: string }>`unnest(
        ${changes.map(({ id }) => id)}::uuid[], ${changes.map(({ from }) => from)}::text[], ${changes.map(({ to }) => to)}::text[]
      )`.as<'given'>(sql`given(id, former, next)`))
        .set(({ ref }) => ({ tokens: ref('given.next') }))
        .whereRef('identities.id', '=', 'given.id').whereRef('tokens', '=', 'given.former').execute()
    }
    done.encrypted += changes.length
    if (rows.length < BATCH_SIZE) return done
    after = rows.at(-1)!.id
  }
}
