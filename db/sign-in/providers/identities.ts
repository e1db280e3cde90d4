import { sql } from 'kysely'
import { IdentityNotFound, MAX_IDENTITIES_PER_USER, TooManyIdentities } from '../../../schema/sign-in/providers.ts'
import { noFields, type UserFields } from '../../../schema/users/user-fields.ts'
import { isUuid } from '../../driver/postgres.ts'
import type { IdentitiesTable } from '../../tables/sign-in.ts'
import { requireWayToSignIn, type OfferedWays } from '../ways.ts'
import type { Database, UserRow } from '../../tables/index.ts'
import type { Row } from '../../tables/row.ts'
import { userColumns } from '../../users/columns.ts'

const columns = [
  'id', 'provider', 'email', 'created_at as createdAt', 'last_used_at as lastUsedAt',
] as const

/** An identity, as its user sees it. */
export type IdentityRow = Row<IdentitiesTable, 'id' | 'provider' | 'email' | 'created_at' | 'last_used_at'>

/** Who somebody is at a provider. */
export type Subject = Row<IdentitiesTable, 'issuer' | 'subject'>

/** An identity to be added. `tokens` are encrypted. */
export type NewIdentity = Row<
  IdentitiesTable, 'id' | 'user_id' | 'provider' | 'issuer' | 'subject' | 'email' | 'tokens'
>

/**
 * Adds an identity, in a transaction that has locked its user. Returns false if anybody has it. Throws
 * `TooManyIdentities`.
 */
export async function insertIdentity (trx: Database, identity: NewIdentity): Promise<boolean> {
  const { id, userId, provider, issuer, subject, email, tokens } = identity
  const { count } = await trx.selectFrom('identities').select(sql<number>`count(*)::int`.as('count'))
    .where('user_id', '=', userId).executeTakeFirstOrThrow()
  if (count >= MAX_IDENTITIES_PER_USER) throw new TooManyIdentities()
  const row = await trx.insertInto('identities')
    .values({ id, user_id: userId, provider, issuer, subject, email, tokens })
    .onConflict((conflict) => conflict.columns(['issuer', 'subject']).doNothing())
    .returning('id').executeTakeFirst()
  return row !== undefined
}

/** An identity with which somebody signs in, and its user. */
export interface FoundIdentity { identityId: string, user: UserRow }

/** Returns an identity with its user, or undefined if nobody has it. */
export async function findIdentity (
  db: Database, { issuer, subject }: Subject, fields: UserFields = noFields
): Promise<FoundIdentity | undefined> {
  const row = await db.selectFrom('identities').innerJoin('users', 'users.id', 'identities.user_id')
    // The name has an underscore, which names of fields cannot have.
    .select('identities.id as identity_id').select(userColumns(fields))
    .where('issuer', '=', issuer).where('subject', '=', subject).executeTakeFirst()
  if (!row) return undefined
  const { identity_id: identityId, ...user } = row
  return { identityId, user }
}

/** Returns the identities of a user, newest first. */
export async function listIdentities (db: Database, userId: string): Promise<IdentityRow[]> {
  return db.selectFrom('identities').select(columns).where('user_id', '=', userId)
    .orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
}

/** Returns whether a user has an identity of an issuer. */
export async function hasIdentityOf (db: Database, userId: string, issuer: string): Promise<boolean> {
  const row = await db.selectFrom('identities').select('id').where('user_id', '=', userId).where('issuer', '=', issuer)
    .limit(1).executeTakeFirst()
  return row !== undefined
}

/**
 * Stores what the provider has said at the last use of an identity. What it has not said, tokens or whether there is an
 * address, remains as it is stored.
 */
export async function updateIdentity (
  db: Database,
  { id, email, tokens }: Pick<NewIdentity, 'id' | 'tokens'> & { email: string | null | undefined }
): Promise<void> {
  const said = { ...email !== undefined && { email }, ...tokens !== null && { tokens } }
  if (Object.keys(said).length === 0) return
  await db.updateTable('identities').set(said).where('id', '=', id).execute()
}

/**
 * Removes an identity of a user, in a transaction that has locked the user. Throws `IdentityNotFound`, and
 * `LastWayToSignIn` if the user has no other way to sign in.
 */
export async function deleteIdentity (
  trx: Database, userId: string, id: string, offered: OfferedWays
): Promise<void> {
  if (!isUuid(id)) throw new IdentityNotFound()
  const removed = await trx.deleteFrom('identities').where('user_id', '=', userId).where('id', '=', id)
    .returning('id').executeTakeFirst()
  if (!removed) throw new IdentityNotFound()
  await requireWayToSignIn(trx, userId, offered)
}
