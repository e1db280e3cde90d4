import { sql, type RawBuilder } from 'kysely'
import { toText, type Fields } from '../../schema/fields/fields.ts'
import { AlreadyMember, OrganizationInUse, OrganizationNotFound, SlugTaken } from '../../schema/organizations/organizations.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { insertResult, type StoredResult } from '../idempotency/idempotency.ts'
import { newId } from '../driver/ids.ts'
import { arrayOf, isUuid, schemaOf, violates, violatesForeignKey } from '../driver/postgres.ts'
import { selectField } from '../fields/field-columns.ts'
import { mayBeLarge, sizeOfFields, takeFitting } from '../fields/page-size.ts'
import { toPage, type Page } from '../tables/page.ts'
import type { Row } from '../tables/row.ts'
import type { Database } from '../tables/index.ts'
import type { MembershipsTable, OrganizationsTable } from '../tables/organizations.ts'
import { foldText, keyOfName } from '../users/user-keys.ts'

const ownColumns = [
  'organizations.id', 'organizations.name', 'organizations.slug', 'organizations.created_at as createdAt',
  'organizations.updated_at as updatedAt', 'organizations.row_version as rowVersion',
] as const

/**
 * Returns the columns of an organisation, with the fields of the host. Their rows have the type `OrganizationRow`,
 * which does not know the fields. A field without a value has its default.
 */
const columnsOf = (fields: Fields): readonly (typeof ownColumns)[number][] =>
  [...ownColumns, ...fields.map((field) => selectField('organizations', field)) as never[]]

// Returns the values of fields as their columns have them.
const storedOf = (fields: Fields, given: object): Record<string, RawBuilder<unknown>> => Object.fromEntries(
  fields.filter(({ name }) => Reflect.get(given, name) !== undefined).map((field) =>
    [field.name, sql`${toText(field, Reflect.get(given, field.name))}::text::${sql.raw(field.column)}`])
)

export type OrganizationRow =
  Row<OrganizationsTable, 'id' | 'name' | 'slug' | 'created_at' | 'updated_at' | 'row_version'>
export type MembershipRow = Row<MembershipsTable, 'id' | 'role'>

/** An organisation, and the membership of a user in it. */
export interface Standing {
  readonly organization: OrganizationRow
  readonly membership: MembershipRow | undefined
}

/** An organisation and a user: `<id> <user id>`, or `<id> `. A text, so that equal keys share one read of a batch. */
export type StandingKey = `${string} ${string}`

/** Returns organisations with the memberships of users, in the order of the keys. */
export async function findStandings (
  db: Database, keys: readonly StandingKey[], fields: Fields
): Promise<(Standing | undefined)[]> {
  const asked = keys.map((key) => key.split(' ') as [string, string])
  const known = asked.map(([id, user], place) => ({ id, user, place })).filter(({ id }) => isUuid(id))
  const users = known.map(({ user }) => isUuid(user) ? user : null)
  const rows = await db
    .selectFrom(sql<{ org: string, member: string | null, place: number }>`unnest(
      ${arrayOf(known.map(({ id }) => id))}::uuid[], ${users}::uuid[], ${arrayOf(known.map(({ place }) => place))}::integer[]
    )`.as<'asked'>(sql`asked(org, member, place)`))
    .innerJoin('organizations', 'organizations.id', 'asked.org')
    .leftJoin('memberships', (join) => join.onRef('memberships.organization_id', '=', 'asked.org')
      .onRef('memberships.user_id', '=', 'asked.member'))
    .select(columnsOf(fields)).select(['asked.place', 'memberships.id as membershipId', 'memberships.role']).execute()
  const found: (Standing | undefined)[] = keys.map(() => undefined)
  for (const { place, membershipId, role, ...organization } of rows) {
    found[place] = { organization, membership: membershipId === null ? undefined : { id: membershipId, role: role! } }
  }
  return found
}

/**
 * Locks an organisation until the transaction ends, and returns it with the membership of a user. Every change of an
 * organisation or of its members takes this lock. A transaction that also locks a user locks the user first.
 */
export async function lockStanding (
  trx: Database, id: string, userId: string | undefined, fields: Fields
): Promise<Standing | undefined> {
  if (!isUuid(id)) return undefined
  const organization = await trx.selectFrom('organizations').select(columnsOf(fields)).where('id', '=', id)
    .forNoKeyUpdate().executeTakeFirst()
  if (!organization) return undefined
  // A separate statement, which sees what was committed while the first one waited for the lock.
  return { organization, membership: userId === undefined ? undefined : await findMembership(trx, id, userId) }
}

/** Returns the membership of a user. */
export async function findMembership (
  db: Database, organizationId: string, userId: string
): Promise<MembershipRow | undefined> {
  if (!isUuid(userId)) return undefined
  return db.selectFrom('memberships').select(['id', 'role'])
    .where('organization_id', '=', organizationId).where('user_id', '=', userId).executeTakeFirst()
}

interface ListQuery { q?: string | undefined, limit: number, after?: string | undefined }

/** Returns a page of all organisations, newest first. If they have large fields, it has fewer rows. */
export async function listOrganizations (
  db: Database, query: ListQuery, fields: Fields
): Promise<Page<OrganizationRow>> {
  const { limit } = query
  if (!mayBeLarge(fields, limit + 1)) {
    return toPage(await selectPage(db, query).select(columnsOf(fields)).execute(), limit)
  }
  // The sizes of the rows are read first, so that a page of the largest values does not have to fit into memory.
  const found = await selectPage(db, query).select(['id', sizeOfFields('organizations', fields).as('bytes')]).execute()
  const fitting = takeFitting(found, limit)
  const rows = await db.selectFrom('organizations').select(columnsOf(fields))
    .where('id', '=', sql<string>`any(${arrayOf(fitting.map(({ id }) => id))}::uuid[])`).orderBy('id', 'desc').execute()
  return { rows, next: fitting.length < found.length ? fitting.at(-1)!.id : null }
}

function selectPage (db: Database, { q, limit, after }: ListQuery) {
  const name = keyOfName(schemaOf(db), sql`name`)
  const begins = (key: ReturnType<typeof sql<string>>) => sql<boolean>`${key} like
    (select replace(replace(replace(${foldText(schemaOf(db), sql`${q}::text`)}, '\\', '\\\\'), '%', '\\%'), '_', '\\_')) || '%'`
  return db.selectFrom('organizations')
    .$if(q !== undefined, (query) => query.where(({ or }) => or([begins(name), begins(sql`slug`)])))
    .$if(after !== undefined, (query) => query.where('id', '<', after!))
    .orderBy('id', 'desc').limit(limit + 1)
}

/** An organisation, and the role of a user in it; null for who is no member. */
export interface SeenOrganization extends OrganizationRow { role: string | null }

/** An organisation of a user, with the role of the user in it. */
export interface OwnOrganizationRow extends SeenOrganization { role: string, membershipId: string }

/** Returns the organisations of each of these users, the one that the user has joined last first. */
export async function listOrganizationsOf (
  db: Database, userIds: readonly string[], fields: Fields
): Promise<OwnOrganizationRow[][]> {
  const rows = await db.selectFrom('memberships')
    .innerJoin('organizations', 'organizations.id', 'memberships.organization_id')
    .select(columnsOf(fields)).select(['memberships.user_id as userId', 'memberships.role', 'memberships.id as membershipId'])
    .where('user_id', '=', sql<string>`any(${arrayOf(userIds.filter(isUuid))}::uuid[])`)
    .orderBy('memberships.created_at', 'desc').orderBy('organizations.id', 'desc').execute()
  const byUser = Map.groupBy(rows, ({ userId }) => userId)
  return userIds.map((id) => (byUser.get(id) ?? []).map(({ userId, ...organization }) => organization))
}

/** The values of an organisation, also those of the fields of the host, which the type does not know. */
export interface OrganizationValues { readonly name: string, readonly slug: string }

/** Creates an organisation. Throws `SlugTaken`. */
export async function insertOrganization (
  trx: Database, { id = newId(trx), name, slug, ...given }: OrganizationValues & { id?: string }, fields: Fields
): Promise<OrganizationRow> {
  return rejectTakenSlug(trx, () => trx.insertInto('organizations').values({ id, name, slug, ...storedOf(fields, given) })
    .returning(columnsOf(fields)).executeTakeFirstOrThrow())
}

/** Stores the result of the creation of an organisation, in its transaction. Throws `KeyTaken`. */
export function storeCreation (trx: Database, id: string, once: ResultKey, fields: Fields): Promise<void> {
  return insertResult(trx, 'organization', id, once, (db) =>
    db.selectFrom('organizations').select(columnsOf(fields)).where('organizations.id', '=', id))
}

/** Returns an organisation that was created with an idempotency key, as it was then. */
export function restoreOrganization ({ result, rowVersion }: StoredResult): OrganizationRow {
  const { createdAt, updatedAt, ...row } = JSON.parse(result!) as Record<'id' | 'name' | 'slug' | 'createdAt' | 'updatedAt', string>
  return { ...row, createdAt: new Date(createdAt), updatedAt: new Date(updatedAt), rowVersion: rowVersion! }
}

/** Changes an organisation. Throws `SlugTaken`. */
export async function updateOrganization (
  trx: Database, id: string, { name, slug, ...given }: Partial<OrganizationValues>, fields: Fields
): Promise<OrganizationRow> {
  const changes = {
    ...name !== undefined && { name }, ...slug !== undefined && { slug }, updated_at: sql<Date>`clock_timestamp()`,
  }
  return rejectTakenSlug(trx, () => trx.updateTable('organizations').set({ ...changes, ...storedOf(fields, given) })
    .where('id', '=', id).returning(columnsOf(fields)).executeTakeFirstOrThrow(() => new OrganizationNotFound()))
}

async function rejectTakenSlug<Result> (db: Database, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    throw violates(db, error, 'organizations', 'organizations_slug') ? new SlugTaken() : error
  }
}

/** Returns whether a slug is free. */
export async function isSlugFree (db: Database, slug: string): Promise<boolean> {
  return await db.selectFrom('organizations').select('id').where('slug', '=', slug).executeTakeFirst() === undefined
}

/**
 * Deletes an organisation that is locked, with its memberships and invitations. Returns the ids of the memberships.
 * Throws `OrganizationInUse` if a foreign key of the host forbids it.
 */
export async function deleteOrganization (trx: Database, id: string): Promise<string[]> {
  const ended = await trx.deleteFrom('memberships').where('organization_id', '=', id).returning('id').execute()
  try {
    await trx.deleteFrom('organizations').where('id', '=', id).execute()
  } catch (error) {
    throw violatesForeignKey(error) ? new OrganizationInUse() : error
  }
  return ended.map(({ id }) => id)
}

/** A member of an organisation. */
export interface MemberRow extends MembershipRow {
  userId: string
  name: string
  email: string
  disabled: boolean
  createdAt: Date
}

export const memberColumns = [
  'memberships.id', 'memberships.role', 'memberships.user_id as userId', 'memberships.created_at as createdAt',
  'users.name', 'users.email', 'users.disabled',
] as const

/** Returns a member. */
export async function findMember (
  db: Database, organizationId: string, userId: string
): Promise<MemberRow | undefined> {
  if (!isUuid(userId)) return undefined
  return db.selectFrom('memberships').innerJoin('users', 'users.id', 'memberships.user_id').select(memberColumns)
    .where('organization_id', '=', organizationId).where('user_id', '=', userId).executeTakeFirst()
}

/** Adds a member to an organisation that is locked. Throws `AlreadyMember`. */
export async function insertMembership (
  trx: Database, { organizationId, userId, role }: { organizationId: string, userId: string, role: string }
): Promise<MembershipRow> {
  const row = await trx.insertInto('memberships')
    .values({ id: newId(trx), organization_id: organizationId, user_id: userId, role })
    .onConflict((conflict) => conflict.columns(['organization_id', 'user_id']).doNothing())
    .returning(['id', 'role']).executeTakeFirst()
  if (!row) throw new AlreadyMember()
  return row
}

/** Replaces a membership by one with another role. Its former id has ended, and so have its API keys. */
export async function replaceMembership (trx: Database, id: string, role: string): Promise<MembershipRow> {
  return trx.updateTable('memberships').set({ id: newId(trx), role }).where('id', '=', id).returning(['id', 'role'])
    .executeTakeFirstOrThrow()
}

/** Ends a membership. */
export async function deleteMembership (trx: Database, id: string): Promise<void> {
  await trx.deleteFrom('memberships').where('id', '=', id).execute()
}

/** Returns whether an organisation has fewer than `max` members. It counts no further. */
export async function hasRoom (trx: Database, organizationId: string, max: number): Promise<boolean> {
  return await countUpTo(trx, 'organization_id', organizationId, max) < max
}

/** Returns whether a user has fewer than `max` memberships. */
export async function mayJoin (trx: Database, userId: string, max: number): Promise<boolean> {
  return await countUpTo(trx, 'user_id', userId, max) < max
}

async function countUpTo (
  trx: Database, column: 'organization_id' | 'user_id', id: string, max: number
): Promise<number> {
  const { count } = await trx
    .selectFrom(trx.selectFrom('memberships').select('id').where(column, '=', id).limit(max).as('some'))
    .select(sql<number>`count(*)::integer`.as('count')).executeTakeFirstOrThrow()
  return count
}
