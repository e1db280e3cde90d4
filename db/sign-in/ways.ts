import { sql, type ExpressionBuilder, type RawBuilder } from 'kysely'
import { credentialKinds, type CredentialKind } from '../../schema/sign-in/ways.ts'
import { LastWayToSignIn } from '../../schema/sign-in/passkeys.ts'
import type { Database, Tables } from '../tables/index.ts'

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

/** What an app offers to everybody who has an identity or a verified address. */
export interface OfferedWays {
  /** The ids of the providers that there are: nobody can sign in with an identity of another one. */
  providers: readonly string[]
  /** Whether a mail to a verified address logs its user in. */
  loginMail: boolean
}

type WayTable = 'passkeys' | 'totp' | 'identities' | 'api_keys'

interface Way {
  table: WayTable
  /**
   * A condition for its rows: whether one lets its user in, so that it may be the last way. Undefined for second
   * factors and for keys, which need another way.
   */
  logsIn: ((offered: OfferedWays) => RawBuilder<boolean>) | undefined
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
    table: 'passkeys',
    logsIn: () => sql<boolean>`true`,
    list: (db, userId) => db.selectFrom('passkeys').where('user_id', '=', userId)
      .select(['id', 'name', 'created_at as addedAt']).execute(),
    remove: (trx, userId, which) => trx.deleteFrom('passkeys').where('user_id', '=', userId)
      .where(isAmong(which, 'created_at', 'id')).returning('id').execute(),
  },
  totp: {
    table: 'totp',
    logsIn: undefined,
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
    table: 'identities',
    logsIn: ({ providers }) => sql<boolean>`provider = any(${[...providers]}::text[])`,
    list: (db, userId) => db.selectFrom('identities').where('user_id', '=', userId)
      .select(['id', 'provider as name', 'created_at as addedAt']).execute(),
    remove: (trx, userId, which) => trx.deleteFrom('identities').where('user_id', '=', userId)
      .where(isAmong(which, 'created_at', 'id')).returning('id').execute(),
  },
  'api-key': {
    table: 'api_keys',
    logsIn: undefined,
    list: (db, userId) => db.selectFrom('api_keys').where('user_id', '=', userId)
      .where(sql<boolean>`coalesce(expires_at > now(), true)`)
      .select(['id', 'name', 'created_at as addedAt']).execute(),
    remove: (trx, userId, which) => trx.deleteFrom('api_keys').where('user_id', '=', userId)
      .where(isAmong(which, 'created_at', 'id')).returning('id').execute(),
  },
}

/** Returns all ways of a user, by kind and then newest first. */
export async function listWays (db: Database, userId: string): Promise<StoredWay[]> {
  const found: StoredWay[] = []
  for (const kind of credentialKinds) {
    const rows = await ways[kind].list(db, userId)
    found.push(...rows.map((row) => ({ kind, ...row })).sort((a, b) => b.addedAt.getTime() - a.addedAt.getTime()))
  }
  return found
}

type Subqueries = Pick<ExpressionBuilder<Tables, never>, 'exists' | 'or' | 'selectFrom'>

/** Returns a condition: the user whose id is `user` has one of the ways. */
export const hasAnyWay = ({ exists, or, selectFrom }: Subqueries, user: RawBuilder<string>) =>
  or(Object.values(ways).map(({ table }) =>
    exists(selectFrom<WayTable>(table).select('user_id').where('user_id', '=', user))))

/**
 * Throws `LastWayToSignIn` if a user has neither a password nor a way that logs in nor, with `loginMail`, a verified
 * address, in the transaction that has locked the user and removed one of them.
 */
export async function requireWayToSignIn (trx: Database, userId: string, offered: OfferedWays): Promise<void> {
  const { remains } = await trx.selectNoFrom(({ or, exists, selectFrom }) => or([
    exists(selectFrom('users').select('users.id').where('users.id', '=', userId)
      .where(({ or, eb, lit }) => or([
        eb('password_hash', 'is not', null), ...offered.loginMail ? [eb('email_verified', '=', lit(true))] : [],
      ]))),
    ...Object.values(ways).flatMap(({ table, logsIn }) => logsIn
      ? [exists(selectFrom<WayTable>(table).select('user_id').where('user_id', '=', userId).where(logsIn(offered)))]
      : []),
  ]).as('remains')).executeTakeFirstOrThrow()
  if (!remains) throw new LastWayToSignIn()
}

const isAmong = ({ since, except = [] }: Which, addedAt: string, id: string): RawBuilder<boolean> => sql<boolean>`(
  ${since ? sql`${sql.ref(addedAt)} >= ${since}` : sql`true`} and ${sql.ref(id)} <> all (${[...except]}::uuid[])
)`
