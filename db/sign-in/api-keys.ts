import { expressionBuilder, sql } from 'kysely'
import { ApiKeyNotFound, MAX_API_KEYS_PER_USER, TooManyApiKeys } from '../../schema/sign-in/api-keys.ts'
import type { ActorOrganization } from '../../schema/options/policy.ts'
import type { UserKind } from '../../schema/users/users.ts'
import { noFields } from '../../schema/users/user-fields.ts'
import { isUuid } from '../driver/postgres.ts'
import type { ApiKeysTable } from '../tables/sign-in.ts'
import { asOrganization } from '../access/memberships.ts'
import type { Database, Tables, UserRow } from '../tables/index.ts'
import { toPage, type Page } from '../tables/page.ts'
import type { Row } from '../tables/row.ts'
import { userColumns } from '../users/columns.ts'

// The driver reads arrays as text, and JSON as arrays.
const actions = sql<string[] | null>`to_json(actions)`.as('actions')
const organizationId = expressionBuilder<Tables, 'api_keys'>().selectFrom('memberships').select('organization_id')
  .whereRef('memberships.id', '=', 'api_keys.membership_id').as('organizationId')
const columns = [
  'id', 'name', actions, organizationId, 'created_at as createdAt', 'last_used_at as lastUsedAt',
  'expires_at as expiresAt',
] as const

/** An API key, as its user sees it. */
export type ApiKeyRow =
  Row<ApiKeysTable, 'id' | 'name' | 'actions' | 'created_at' | 'last_used_at' | 'expires_at'> & {
    /** The organisation for which it acts; null for none. */
    organizationId: string | null
  }

/** An API key to be created. */
export type NewApiKey =
  Row<ApiKeysTable, 'id' | 'user_id' | 'hash' | 'name' | 'actions' | 'multi_factor' | 'membership_id' | 'expires_at'>

/** A condition: a key has not expired. */
const isLive = sql<boolean>`coalesce(api_keys.expires_at > now(), true)`

/** Creates an API key, in a transaction that has locked its user. Throws `TooManyApiKeys`. */
export async function insertApiKey (trx: Database, key: NewApiKey): Promise<ApiKeyRow> {
  const { id, userId, hash, name, actions, multiFactor, membershipId, expiresAt } = key
  const { count } = await trx.selectFrom('api_keys').select(sql<number>`count(*)::int`.as('count'))
    .where('user_id', '=', userId).where(isLive).executeTakeFirstOrThrow()
  if (count >= MAX_API_KEYS_PER_USER) throw new TooManyApiKeys()
  return trx.insertInto('api_keys').values({
    id,
    user_id: userId,
    hash,
    name,
    actions: sql<string[] | null>`${actions}::text[]`,
    multi_factor: multiFactor,
    membership_id: membershipId,
    expires_at: expiresAt,
  }).returning(columns).executeTakeFirstOrThrow()
}

/** Returns the keys of a user that have not expired, newest first. */
export async function listApiKeys (db: Database, userId: string): Promise<ApiKeyRow[]> {
  return db.selectFrom('api_keys').select(columns).where('user_id', '=', userId).where(isLive)
    .orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
}

/** Returns the keys of all users that have not expired, newest first. */
export async function listApiKeysOfAll (db: Database, limit: number): Promise<(ApiKeyRow & { userId: string })[]> {
  return db.selectFrom('api_keys').select(['user_id as userId', ...columns]).where(isLive)
    .orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit).execute()
}

/** Returns a page of the keys of all users that have not expired, newest first, by keyset. */
export async function listApiKeyPage (
  db: Database, { limit, after }: { limit: number, after?: string | undefined }
): Promise<Page<ApiKeyRow & { userId: string }>> {
  const rows = await db.selectFrom('api_keys').select(['user_id as userId', ...columns]).where(isLive)
    .$if(after !== undefined, (query) => query.where('id', '<', after!))
    .orderBy('id', 'desc').limit(limit + 1).execute()
  return toPage(rows, limit)
}

/** Returns the id of the user of a key, or undefined if there is no such key. */
export async function findApiKeyOwner (db: Database, id: string): Promise<string | undefined> {
  if (!isUuid(id)) return undefined
  const row = await db.selectFrom('api_keys').select('user_id as userId').where('id', '=', id).executeTakeFirst()
  return row?.userId
}

/** Returns the ids of all keys of a user. */
export async function listApiKeyIds (db: Database, userId: string): Promise<string[]> {
  const rows = await db.selectFrom('api_keys').select('id').where('user_id', '=', userId).execute()
  return rows.map(({ id }) => id)
}

/** Returns a key of a user that has not expired. Throws `ApiKeyNotFound`. */
export async function getApiKey (db: Database, userId: string, id: string): Promise<ApiKeyRow> {
  if (!isUuid(id)) throw new ApiKeyNotFound()
  return db.selectFrom('api_keys').select(columns).where('user_id', '=', userId).where('id', '=', id).where(isLive)
    .executeTakeFirstOrThrow(() => new ApiKeyNotFound())
}

/** Deletes a key of a user. Throws `ApiKeyNotFound`. */
export async function deleteApiKey (trx: Database, userId: string, id: string): Promise<void> {
  if (!isUuid(id)) throw new ApiKeyNotFound()
  await trx.deleteFrom('api_keys').where('user_id', '=', userId).where('id', '=', id).returning('id')
    .executeTakeFirstOrThrow(() => new ApiKeyNotFound())
}

/** A key with which a request was sent, and its user. */
export type FoundApiKey = Row<ApiKeysTable, 'actions' | 'multi_factor' | 'expires_at'> & {
  keyId: string
  kind: UserKind
  user: UserRow
  /** The membership for which the key acts, or null. */
  organization: ActorOrganization | null
}

/**
 * Returns the keys with these hashes in hexadecimal digits, in their order. One that does not exist or has expired, or
 * whose user is disabled, yields `undefined`.
 */
export async function findApiKeys (
  db: Database, hashes: readonly string[], fields = noFields
): Promise<(FoundApiKey | undefined)[]> {
  const rows = await db.selectFrom('api_keys').innerJoin('users', 'users.id', 'api_keys.user_id')
    .leftJoin('memberships', 'memberships.id', 'api_keys.membership_id')
    // The names have underscores, which names of fields cannot have.
    .select([
      'api_keys.id as key_id', sql<string>`encode(api_keys.hash, 'hex')`.as('key_hash'),
      sql<string[] | null>`to_json(api_keys.actions)`.as('key_actions'), 'api_keys.multi_factor',
      'api_keys.expires_at as key_expires_at',
      sql<ActorOrganization | null>`case when memberships.id is not null then ${asOrganization} end`
        .as('key_organization'),
    ])
    .select(userColumns(fields))
    .where('api_keys.hash', '=', sql<Uint8Array>`any(array(select decode(digits, 'hex') from unnest(${hashes}::text[]) as digits))`)
    .where(isLive).where('users.disabled', '=', false).execute()
  const found = new Map(rows.map(({
    key_id: keyId, key_hash: hash, key_actions: actions, multi_factor: multiFactor, key_expires_at: expiresAt,
    key_organization: organization, ...user
  }) => [hash, { keyId, actions, multiFactor, expiresAt, kind: user.kind, user, organization }]))
  return hashes.map((hash) => found.get(hash))
}

/**
 * Stores when keys were used last. A key whose row another node has locked is skipped: that node is doing the same.
 * @param uses the ids of keys, and milliseconds since 1970
 */
export async function storeApiKeyUses (db: Database, uses: ReadonlyMap<string, number>): Promise<void> {
  const times = [...uses.values()].map((time) => new Date(time).toISOString())
  await db
    .with('used', (cte) => cte.selectFrom('api_keys')
      .innerJoin(sql<{ used_id: string, used_at: Date }>`unnest(${[...uses.keys()]}::uuid[], ${times}::timestamptz[])`
        .as<'given'>(sql`given(used_id, used_at)`), 'given.used_id', 'api_keys.id')
      .select(['id', 'used_at']).orderBy('id').forUpdate('api_keys').skipLocked())
    .updateTable('api_keys').from('used').whereRef('api_keys.id', '=', 'used.id')
    .set({ last_used_at: sql<Date>`greatest(last_used_at, used.used_at)` }).execute()
}
