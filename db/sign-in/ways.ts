import { sql, type RawBuilder } from 'kysely'
import type { CredentialKind } from '../../schema/outbox/events.ts'
import type { Database } from '../tables/index.ts'

/** A way to sign in, a second factor or a key that a user has. */
export interface StoredWay {
  kind: CredentialKind
  /** That of an authenticator app is the id of its user, who has one at most. */
  id: string
  /** The name of a passkey or a key, and the id of the provider of an identity. */
  name: string | null
  addedAt: Date
}

/** Which ways of a user: all of them, without members. */
export interface Which {
  /** Those that were added at this time or later. */
  since?: RawBuilder<Date>
  /** Those that have none of these ids. */
  except?: readonly string[]
}

interface Way {
  list (db: Database, userId: string): Promise<Omit<StoredWay, 'kind'>[]>
  /** Removes those of a user, in a transaction that has locked the user, and returns their ids. */
  remove (trx: Database, userId: string, which: Which): Promise<{ id: string }[]>
}

/**
 * The ways to sign in that are stored for each user, besides the password. Whatever repairs an account, or lists what
 * it has, goes through this table: see `repairs.ts`.
 */
export const ways: Readonly<Record<CredentialKind, Way>> = {
  passkey: {
    list: (db, userId) => db.selectFrom('passkeys').where('user_id', '=', userId)
      .select(['id', 'name', 'created_at as addedAt']).execute(),
    remove: (trx, userId, which) => trx.deleteFrom('passkeys').where('user_id', '=', userId)
      .where(isAmong(which, 'created_at', 'id')).returning('id').execute(),
  },
  totp: {
    list: (db, userId) => db.selectFrom('totp').where('user_id', '=', userId).where('confirmed_at', 'is not', null)
      .select(['user_id as id', sql<null>`null`.as('name'), 'confirmed_at as addedAt'])
      .$narrowType<{ addedAt: Date }>().execute(),
    // A secret that no code has confirmed goes in any case, and does not count: nobody has relied on it. Recovery codes
    // go with their app.
    async remove (trx, userId, which) {
      const removed = await trx.deleteFrom('totp').where('user_id', '=', userId)
        .where(({ or, eb }) => or([eb('confirmed_at', 'is', null), isAmong(which, 'confirmed_at', 'user_id')]))
        .returning(['user_id as id', 'confirmed_at as confirmedAt']).execute()
      if (removed.length > 0) await trx.deleteFrom('recovery_codes').where('user_id', '=', userId).execute()
      return removed.filter(({ confirmedAt }) => confirmedAt !== null).map(({ id }) => ({ id }))
    },
  },
  identity: {
    list: (db, userId) => db.selectFrom('identities').where('user_id', '=', userId)
      .select(['id', 'provider as name', 'created_at as addedAt']).execute(),
    remove: (trx, userId, which) => trx.deleteFrom('identities').where('user_id', '=', userId)
      .where(isAmong(which, 'created_at', 'id')).returning('id').execute(),
  },
  'api-key': {
    list: (db, userId) => db.selectFrom('api_keys').where('user_id', '=', userId)
      .where(sql<boolean>`coalesce(expires_at > now(), true)`)
      .select(['id', 'name', 'created_at as addedAt']).execute(),
    remove: (trx, userId, which) => trx.deleteFrom('api_keys').where('user_id', '=', userId)
      .where(isAmong(which, 'created_at', 'id')).returning('id').execute(),
  },
}

/** The kinds of ways to sign in, in the order in which people read them. */
export const wayKinds = Object.keys(ways) as CredentialKind[]

/** Returns all ways of a user, by kind and then newest first. */
export async function listWays (db: Database, userId: string): Promise<StoredWay[]> {
  const found: StoredWay[] = []
  for (const kind of wayKinds) {
    const rows = await ways[kind].list(db, userId)
    found.push(...rows.map((row) => ({ kind, ...row })).sort((a, b) => b.addedAt.getTime() - a.addedAt.getTime()))
  }
  return found
}

const isAmong = ({ since, except = [] }: Which, addedAt: string, id: string): RawBuilder<boolean> => sql<boolean>`(
  ${since ? sql`${sql.ref(addedAt)} >= ${since}` : sql`true`} and ${sql.ref(id)} <> all (${[...except]}::uuid[])
)`
