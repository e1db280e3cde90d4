import { sql } from 'kysely'
import { OWNER } from '../../schema/options/organizations.ts'
import { toText, type Fields } from '../../schema/fields/fields.ts'
import { foldEmail } from '../../schema/strings/address.ts'
import { insertAuditEntries, type AuditContext } from '../audit/audit.ts'
import { idAt, newId } from '../driver/ids.ts'
import { actorValue, withEvents } from '../outbox/store.ts'
import type { Database } from '../tables/index.ts'
import { keyOfEmail } from '../users/user-keys.ts'

/** An organisation of another system, with the values of the host's fields as further members. */
export interface ImportedOrganization {
  /** The id that the organisation keeps, in lower case. */
  readonly id: string | undefined
  readonly name: string
  readonly slug: string
  /** In UTC, with microseconds (ISO 8601). */
  readonly createdAt: string | undefined
  readonly members: readonly { readonly userId: string, readonly role: string }[]
}

/** Who may become a member. */
export interface Candidate {
  readonly id: string
  /** The address, folded. */
  readonly key: string
  readonly emailVerified: boolean
  /** Whether it is a person who is not disabled. */
  readonly canLogIn: boolean
}

/** Returns the users with these ids, in lower case, and these addresses, and may lock them. */
export async function findCandidates (
  db: Database, { ids, emails, isLocked }: { ids: readonly string[], emails: readonly string[], isLocked: boolean }
): Promise<Candidate[]> {
  const key = keyOfEmail(sql`email`)
  return db.selectFrom('users')
    .select(({ and, eb }) => [
      'id', key.as('key'), 'email_verified as emailVerified',
      and([eb('account_kind', '=', 'person'), eb('disabled', '=', false)]).$castTo<boolean>().as('canLogIn'),
    ])
    .where(({ or, eb }) => or([
      eb('id', '=', sql<string>`any(${ids}::uuid[])`), eb(key, '=', sql<string>`any(${emails.map(foldEmail)}::text[])`),
    ]))
    // In the order of the ids, so that two imports cannot wait for each other.
    .orderBy('id').$if(isLocked, (query) => query.forNoKeyUpdate()).execute()
}

/** Returns of how many organisations users are members, by their ids. It has no one who is a member of none. */
export async function countMemberships (db: Database, userIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await db.selectFrom('memberships')
    .select(['user_id as id', sql<number>`count(*)::integer`.as('count')])
    .where('user_id', '=', sql<string>`any(${userIds}::uuid[])`).groupBy('user_id').execute()
  return new Map(rows.map(({ id, count }) => [id, count]))
}

/** Returns those of these slugs and ids that organisations have. */
export async function findTaken (db: Database, organizations: readonly ImportedKeys[]): Promise<Set<string>> {
  const rows = await db.selectFrom('organizations').select(['id', 'slug']).where(({ or, eb }) => or([
    eb('slug', '=', sql<string>`any(${organizations.map(({ slug }) => slug)}::text[])`),
    eb('id', '=', sql<string>`any(${idsOf(organizations)}::uuid[])`),
  ])).execute()
  return new Set(rows.flatMap(({ id, slug }) => [id, slug]))
}

type ImportedKeys = Pick<ImportedOrganization, 'id' | 'slug'>

const idsOf = (organizations: readonly ImportedKeys[]): string[] => organizations.flatMap(({ id }) => id ?? [])

/**
 * Creates organisations of another system with their members, their entries in the account log and their events, in the
 * transaction that has locked the members.
 */
export async function insertOrganizations (
  trx: Database, given: readonly ImportedOrganization[], context: AuditContext, fields: Fields
): Promise<void> {
  if (given.length === 0) return
  const organizations = given.map(({ id, createdAt, ...rest }) => ({
    ...rest,
    createdAt: createdAt ?? null,
    id: id ?? (createdAt === undefined ? newId(trx) : idAt(Date.parse(createdAt))),
  }))
  const all = <Name extends 'id' | 'name' | 'slug' | 'createdAt'> (name: Name) => organizations.map((one) => one[name])
  const actorId = actorValue(context.actorId)
  const texts = fields.map((field) =>
    sql`${organizations.map((one) => toText(field, Reflect.get(one, field.name)))}::text[]`)
  // The types of the fields are only known at runtime.
  const columns = fields.map(({ name }) => name) as 'name'[]
  const values = fields.map(({ name, column }) => sql<string>`${sql.ref(name)}::${sql.raw(column)}`.as(name as 'name'))
  const created = trx.with('created', (cte) => cte.insertInto('organizations')
    .columns(['id', 'name', 'slug', 'created_at', ...columns])
    // The names have underscores, which names of fields cannot have.
    .expression(({ selectFrom }) => selectFrom(
      sql<{ id: string, name: string, slug: string, was_created: Date }>`unnest(${sql.join([
        sql`${all('id')}::uuid[]`, sql`${all('name')}::text[]`, sql`${all('slug')}::text[]`,
        sql`${all('createdAt')}::timestamptz[]`, ...texts,
      ])})`.as<'given'>(sql`given(${sql.join(['id', 'name', 'slug', 'was_created', ...columns].map((name) => sql.ref(name)))})`)
    ).select(['id', 'name', 'slug', sql<Date>`coalesce(was_created, now())`.as('created_at'), ...values]))
    .returning(['id', 'name', 'slug']))
  await withEvents(created, trx, 'organization.created', {
    from: 'created',
    subject: 'created.id',
    data: { organizationId: 'created.id', name: 'created.name', slug: 'created.slug', actorId },
  }).selectFrom('created').select('created.id').execute()

  const members = organizations.flatMap(({ id: organizationId, members }) =>
    members.map(({ userId, role }) => ({ id: newId(trx), organizationId, userId, role })))
  const joined = trx.with('joined', (cte) => cte.insertInto('memberships')
    .columns(['id', 'organization_id', 'user_id', 'role'])
    .expression(({ selectFrom }) => selectFrom(
      sql<{ id: string, organization: string, member: string, role: string }>`unnest(
        ${members.map(({ id }) => id)}::uuid[], ${members.map(({ organizationId }) => organizationId)}::uuid[],
        ${members.map(({ userId }) => userId)}::uuid[], ${members.map(({ role }) => role)}::text[]
      )`.as<'given'>(sql`given(id, organization, member, role)`)
    ).select(['id', 'organization', 'member', 'role']))
    .returning(['id', 'organization_id', 'user_id', 'role']))
  await withEvents(joined, trx, 'membership.created', {
    from: 'joined',
    subject: 'joined.organization_id',
    data: {
      organizationId: 'joined.organization_id', membershipId: 'joined.id', userId: 'joined.user_id', role: 'joined.role', actorId,
    },
  }).selectFrom('joined').select('joined.id').execute()

  await insertAuditEntries(trx, organizations.flatMap(({ id: organizationId, members }) => [
    {
      ...context,
      action: 'organization.create' as const,
      userId: members.find(({ role }) => role === OWNER)?.userId ?? null,
      organizationId,
    },
    ...members.map(({ userId }) => ({ ...context, action: 'membership.add' as const, userId, organizationId })),
  ]))
}

/**
 * Creates tables, in a transaction, with what the checked lines of a file have, as if they had been imported. They are
 * dropped with the transaction, and no other session sees them.
 */
export async function createSeenOrganizations (trx: Database): Promise<void> {
  await sql`create temporary table usher_seen_organizations (slug text primary key, id uuid unique) on commit drop`.execute(trx)
  await sql`create temporary table usher_seen_members (user_id uuid primary key, joined integer not null) on commit drop`.execute(trx)
}

/** Returns what `findTaken` and `countMemberships` do, of what `storeSeen` has stored. */
export async function findSeen (
  trx: Database, organizations: readonly ImportedKeys[], userIds: readonly string[]
): Promise<{ taken: Set<string>, joined: Map<string, number> }> {
  const { rows: taken } = await sql<{ id: string | null, slug: string }>`
    select id, slug from pg_temp.usher_seen_organizations
    where slug = any(${organizations.map(({ slug }) => slug)}::text[]) or id = any(${idsOf(organizations)}::uuid[])`.execute(trx)
  const { rows: joined } = await sql<{ user_id: string, joined: number }>`
    select user_id, joined from pg_temp.usher_seen_members where user_id = any(${userIds}::uuid[])`.execute(trx)
  return {
    taken: new Set(taken.flatMap(({ id, slug }) => [slug, ...id === null ? [] : [id]])),
    joined: new Map(joined.map((row) => [row.user_id, row.joined])),
  }
}

/** Stores what organisations would take, in the tables of `createSeenOrganizations`. */
export async function storeSeen (trx: Database, organizations: readonly ImportedOrganization[]): Promise<void> {
  await sql`insert into pg_temp.usher_seen_organizations (slug, id) select slug, id from unnest(
    ${organizations.map(({ slug }) => slug)}::text[], ${organizations.map(({ id }) => id ?? null)}::uuid[]
  ) given(slug, id)`.execute(trx)
  const members = organizations.flatMap(({ members }) => members.map(({ userId }) => userId))
  await sql`insert into pg_temp.usher_seen_members as seen (user_id, joined)
    select id, count(*)::integer from unnest(${members}::uuid[]) given(id) group by id
    on conflict (user_id) do update set joined = seen.joined + excluded.joined`.execute(trx)
}
