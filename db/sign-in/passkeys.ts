import { sql } from 'kysely'
import { PasskeyExists, PasskeyNotFound, MAX_PASSKEYS_PER_USER, TooManyPasskeys } from '../../schema/sign-in/passkeys.ts'
import { noFields, type UserFields } from '../../schema/users/user-fields.ts'
import { isUuid } from '../driver/postgres.ts'
import { requireWayToSignIn, type OfferedWays } from './ways.ts'
import type { UsedPasskey } from '../access/sessions.ts'
import type { PasskeysTable } from '../tables/sign-in.ts'
import type { Database, UserRow } from '../tables/index.ts'
import type { Row } from '../tables/row.ts'
import { userColumns } from '../users/columns.ts'

const columns = [
  'id', 'name', 'created_at as createdAt', 'last_used_at as lastUsedAt', 'backed_up as backedUp',
] as const

/** A passkey, as its user sees it. */
export type PasskeyRow = Row<PasskeysTable, 'id' | 'name' | 'created_at' | 'last_used_at' | 'backed_up'>

/** A passkey to be added. */
export type NewPasskey = { counter: number } &
  Row<PasskeysTable, 'id' | 'user_id' | 'credential_id' | 'public_key' | 'transports' | 'name' | 'backed_up'>

/**
 * Adds a passkey, in a transaction that has locked its user. Throws `PasskeyExists` if anybody has it, and
 * `TooManyPasskeys`.
 */
export async function insertPasskey (trx: Database, passkey: NewPasskey): Promise<PasskeyRow> {
  const { id, userId, credentialId, publicKey, counter, transports, name, backedUp } = passkey
  const { count } = await trx.selectFrom('passkeys').select(sql<number>`count(*)::int`.as('count'))
    .where('user_id', '=', userId).executeTakeFirstOrThrow()
  if (count >= MAX_PASSKEYS_PER_USER) throw new TooManyPasskeys()
  return trx.insertInto('passkeys').values({
    id,
    user_id: userId,
    credential_id: credentialId,
    public_key: publicKey,
    counter: `${counter}`,
    transports,
    name,
    backed_up: backedUp,
  }).onConflict((conflict) => conflict.column('credential_id').doNothing())
    .returning(columns).executeTakeFirstOrThrow(() => new PasskeyExists())
}

/** Returns the passkeys of a user, newest first. */
export async function listPasskeys (db: Database, userId: string): Promise<PasskeyRow[]> {
  return db.selectFrom('passkeys').select(columns).where('user_id', '=', userId)
    .orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
}

/** Returns a passkey of a user. Throws `PasskeyNotFound`. */
export async function getPasskey (db: Database, userId: string, id: string): Promise<PasskeyRow> {
  if (!isUuid(id)) throw new PasskeyNotFound()
  return db.selectFrom('passkeys').select(columns).where('user_id', '=', userId).where('id', '=', id)
    .executeTakeFirstOrThrow(() => new PasskeyNotFound())
}

/** Returns what authenticators must know of a user's passkeys: their ids, and how they are reached. */
export async function listCredentials (
  db: Database, userId: string
): Promise<Row<PasskeysTable, 'credential_id' | 'transports'>[]> {
  return db.selectFrom('passkeys')
    .select(['credential_id as credentialId', sql<string[]>`to_json(transports)`.as('transports')])
    .where('user_id', '=', userId).execute()
}

/** A passkey with which somebody signs in, and its user. */
export type FoundPasskey = Row<PasskeysTable, 'public_key' | 'counter'> & { passkeyId: string, user: UserRow }

/** Returns the passkey with an id that its authenticator has given it, and its user; undefined if there is none. */
export async function findPasskey (
  db: Database, credentialId: Uint8Array, fields: UserFields = noFields
): Promise<FoundPasskey | undefined> {
  const row = await db.selectFrom('passkeys').innerJoin('users', 'users.id', 'passkeys.user_id')
    // The names have underscores, which names of fields cannot have.
    .select(['passkeys.id as passkey_id', 'passkeys.public_key', 'passkeys.counter as passkey_counter'])
    .select(userColumns(fields)).where('credential_id', '=', credentialId).executeTakeFirst()
  if (!row) return undefined
  const { passkey_id: passkeyId, public_key: publicKey, passkey_counter: counter, ...user } = row
  return { passkeyId, publicKey, counter, user }
}

/** Renames a passkey of a user. Throws `PasskeyNotFound`. */
export async function renamePasskey (trx: Database, userId: string, id: string, name: string): Promise<PasskeyRow> {
  if (!isUuid(id)) throw new PasskeyNotFound()
  return trx.updateTable('passkeys').set({ name }).where('user_id', '=', userId).where('id', '=', id)
    .returning(columns).executeTakeFirstOrThrow(() => new PasskeyNotFound())
}

/**
 * Removes a passkey of a user, in a transaction that has locked the user. Throws `PasskeyNotFound`, and
 * `LastWayToSignIn` if the user has no other way to sign in.
 */
export async function deletePasskey (
  trx: Database, userId: string, id: string, offered: OfferedWays
): Promise<void> {
  if (!isUuid(id)) throw new PasskeyNotFound()
  await trx.deleteFrom('passkeys').where('user_id', '=', userId).where('id', '=', id).returning('id')
    .executeTakeFirstOrThrow(() => new PasskeyNotFound())
  await requireWayToSignIn(trx, userId, offered)
}

/** Stores that a challenge was used, until it expires. Returns false if it was used before. */
export async function useCeremony (
  db: Database, { hash, expiresAt }: { hash: Uint8Array, expiresAt: Date }
): Promise<boolean> {
  const row = await db.insertInto('used_ceremonies').values({ hash, expires_at: expiresAt })
    .onConflict((conflict) => conflict.column('hash').doNothing()).returning('hash').executeTakeFirst()
  return row !== undefined
}

/** Records the use of a passkey. Returns false if it was removed meanwhile. */
export async function usePasskey (db: Database, { id, counter, backedUp }: UsedPasskey): Promise<boolean> {
  const { numUpdatedRows } = await db.updateTable('passkeys').where('id', '=', id)
    .set({
      counter: sql<string>`greatest(counter, ${counter}::bigint)`, backed_up: backedUp, last_used_at: sql<Date>`now()`,
    })
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}
