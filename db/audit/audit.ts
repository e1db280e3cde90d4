import { sql, type RawBuilder } from 'kysely'
import type { AuditAction } from '../../schema/audit/audit.ts'
import { limitOf, PREFIXES } from '../../schema/http/network.ts'
import { anyOf, isUuid } from '../driver/postgres.ts'
import { lowestIdWithin, newId } from '../driver/ids.ts'
import { replanned } from '../driver/replanned.ts'
import { toPage, type Page } from '../tables/page.ts'
import type { Database } from '../tables/index.ts'
import { withEntryEvents } from './events.ts'
import { withFailedLogins } from './failed-logins.ts'

/** An entry to be written to the account log: an action that an actor took or attempted. */
export interface NewAuditEntry {
  action: AuditAction
  actorId: string | null
  userId: string | null
  /** The session in which the actor did it; null for an API key. */
  sessionId: string | null
  /** The API key with which the actor did it; null for a session. */
  keyId: string | null
  /** The organisation that it concerns, if it concerns one. */
  organizationId?: string | undefined
  address: string
  userAgent: string
}

export interface AuditEntryRow extends Omit<NewAuditEntry, 'organizationId'> {
  id: string
  organizationId: string | null
  at: Date
}

/** The origin of an entry that the statement of the change writes: the actor, the session and the client. */
export type AuditContext = Omit<NewAuditEntry, 'action' | 'userId' | 'organizationId'>

/** The columns to fill when a statement writes an entry about a session along with its change. */
export const auditColumns = ['id', 'action', 'actor_id', 'user_id', 'session_id', 'address', 'user_agent'] as const
/** Those of an entry about what an actor does, who may use an API key. */
export const actorAuditColumns = [...auditColumns, 'key_id'] as const

/**
 * Writes entries to the account log, and stores their events, as one statement. Returns an array of `undefined`, one
 * per entry, as a batch expects.
 */
export async function insertAuditEntries (db: Database, entries: readonly NewAuditEntry[]): Promise<undefined[]> {
  const all = <Name extends keyof NewAuditEntry> (name: Name) => entries.map((entry) => entry[name])
  const given = sql<Record<typeof actorAuditColumns[number] | 'organization_id', string>>`unnest(
    ${entries.map(() => newId(db))}::uuid[], ${all('action')}::text[], ${all('actorId')}::uuid[], ${all('userId')}::uuid[],
    ${all('sessionId')}::uuid[], ${all('address')}::text[], ${all('userAgent')}::text[], ${all('keyId')}::uuid[],
    ${entries.map(({ organizationId = null }) => organizationId)}::uuid[]
  )`.as<'given'>(sql`given(id, action, actor_id, user_id, session_id, address, user_agent, key_id, organization_id)`)
  // A backup writes its entry also to a database whose table does not have these columns yet.
  const [hasKeys, hasOrganizations] =
    [entries.some(({ keyId }) => keyId !== null), entries.some(({ organizationId }) => organizationId !== undefined)]
  const columns = [
    ...auditColumns, ...hasKeys ? ['key_id' as const] : [], ...hasOrganizations ? ['organization_id' as const] : [],
  ]
  const statement = withEntryEvents(db.with('given', (cte) => cte.selectFrom(given).selectAll()), db, ['given'])
  await withFailedLogins(statement, db, entries).insertInto('audit').columns(columns)
    .expression(({ selectFrom }) => selectFrom('given').select(columns)).execute()
  return entries.map(() => undefined)
}

export interface ListAuditQuery {
  /** The id of the user whose account was affected. */
  userId?: string | undefined
  action?: AuditAction | undefined
  limit: number
  /** The id of the last entry of the previous page. */
  after?: string | undefined
}

/** Returns a page of the account log, newest first, by keyset. */
export async function listAuditEntries (
  db: Database, { userId, action, limit, after }: ListAuditQuery
): Promise<Page<AuditEntryRow>> {
  if (userId !== undefined && !isUuid(userId)) return { rows: [], next: null }
  const rows = await db.selectFrom('audit')
    .select([
      'id', 'action', 'created_at as at', 'actor_id as actorId', 'user_id as userId', 'session_id as sessionId',
      'key_id as keyId', 'organization_id as organizationId', 'address', 'user_agent as userAgent',
    ])
    .$narrowType<{ action: AuditAction }>()
    .$if(userId !== undefined, (query) => query.where('user_id', '=', userId!))
    .$if(action !== undefined, (query) => query.where('action', '=', action!))
    .$if(after !== undefined, (query) => query.where('id', '<', after!))
    .orderBy('id', 'desc').limit(limit + 1)
    .execute()
  return toPage(rows, limit)
}

/** Returns when users have logged in last, by their ids, as one statement. Those without a login are absent. */
export async function readLastLogins (db: Database, ids: readonly string[]): Promise<ReadonlyMap<string, Date>> {
  if (ids.length === 0) return new Map()
  const asked = sql<{ user: string }>`unnest(${ids}::uuid[])`.as<'asked'>(sql`asked("user")`)
  const rows = await db.selectFrom(asked)
    .innerJoinLateral((lateral) => lateral.selectFrom('audit').select('created_at as at')
      .whereRef('user_id', '=', 'asked.user').where('action', '=', 'login').orderBy('id', 'desc').limit(1).as('last'),
    (join) => join.onTrue())
    .select(['asked.user', 'last.at']).execute()
  return new Map(rows.map(({ user, at }) => [user, at]))
}

/** Returns the seconds since the last backup was complete, or undefined if the account log has none. */
export async function readBackupAge (db: Database): Promise<number | undefined> {
  const { age } = await db.selectFrom('audit')
    .select(sql<number | null>`extract(epoch from clock_timestamp() - max(created_at))::float8`.as('age'))
    .where('action', '=', 'backup.create').executeTakeFirstOrThrow()
  return age ?? undefined
}

/** Deletes at most `limit` entries that are older than `seconds`. Returns the number of deleted entries. */
export async function deleteOldAuditEntries (
  db: Database, { seconds, limit }: { seconds: number, limit: number }
): Promise<number> {
  const first = lowestIdWithin(db, seconds)
  const { numDeletedRows } = await replanned(db)
    .with('old', (cte) => cte.selectFrom('audit').select('id').where('id', '<', first)
      .orderBy('id').limit(limit).forUpdate().skipLocked())
    .deleteFrom('audit').where('id', '=', ({ selectFrom }) => anyOf(selectFrom('old').select('id')))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** The entries about one user with one action. */
export interface EntryKind { userId: string, action: string }

// More entries than this are not looked at, so that a flood does not make the statement long. Those of the flood are
// among them.
const MAX_ENTRIES_PER_SCAN = 10_000
// Users with fewer new entries of a kind are not looked at.
const FEWEST = 3
const DAY = 86_400

/**
 * Looks at the newest entries after the one with the id `after`. Returns the kinds that have several of them, whether
 * there are any about nobody, and the newest id.
 */
export async function findFrequentEntries (
  db: Database, after: string
): Promise<{ kinds: EntryKind[], isAnyAboutNobody: boolean, newest: string }> {
  const rows = await replanned(db)
    .with('recent', (cte) => cte.selectFrom('audit').select(['id', 'user_id', 'action']).where('id', '>', after)
      .orderBy('id', 'desc').limit(MAX_ENTRIES_PER_SCAN))
    .selectFrom('recent')
    .select(['user_id as userId', 'action', sql<string>`(array_agg(id order by id desc))[1]`.as('newest')])
    .select(({ fn }) => fn.countAll<string>().as('count')).groupBy(['user_id', 'action']).execute()
  return {
    kinds: rows.flatMap(({ userId, action, count }) =>
      userId !== null && Number(count) >= FEWEST ? [{ userId, action }] : []),
    isAnyAboutNobody: rows.some(({ userId }) => userId === null),
    newest: rows.reduce((newest, row) => row.newest > newest ? row.newest : newest, after),
  }
}

/**
 * Deletes at most `limit` entries of a kind of the last 24 hours, so that `keep` remain: half are the first of them and
 * half are the newest. Earlier entries and those of other kinds are not touched, so nobody can push them out. Returns
 * the number of deleted entries.
 */
export async function thinAuditEntries (
  db: Database, { userId, action }: EntryKind, { keep, limit }: { keep: number, limit: number }
): Promise<number> {
  const entries = db.selectFrom('audit').select('id')
    .where('user_id', '=', userId).where('action', '=', action).where('id', '>=', lowestIdWithin(db, DAY))
  const end = (order: 'asc' | 'desc') =>
    sql<string>`(${entries.orderBy('id', order).offset(Math.ceil(keep / 2) - 1).limit(1)})`
  const { numDeletedRows } = await replanned(db).deleteFrom('audit')
    .where('id', '=', sql<string>`any(array(${entries.where('id', '>', end('asc')).where('id', '<', end('desc'))
      .orderBy('id').limit(limit).forUpdate().skipLocked()}))`)
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** How many entries about nobody with one action are kept of 24 hours: of a narrowest network, and of all. */
export interface NobodyLimits { perNetwork: number, total: number }

const [NARROW, WIDE] = PREFIXES.ipv4
/**
 * What entries about nobody are counted by, in this order: the networks of a client, narrowest first, so that a flood
 * takes nothing from its neighbours, and all of them together.
 */
export const entrySources = [
  { ipv4: NARROW, ipv6: PREFIXES.ipv6[0] }, { ipv4: WIDE, ipv6: PREFIXES.ipv6[1] },
  { ipv4: WIDE, ipv6: PREFIXES.ipv6[2] }, 'all',
] as const

/**
 * Deletes at most `limit` entries about nobody of the last 24 hours, such as failed logins to unknown addresses, so
 * that of each source and action no more than its limit remain: half are the first of them and half are the newest.
 * Returns the number of deleted entries.
 */
export async function thinEntriesAboutNobody (
  db: Database, source: typeof entrySources[number], { perNetwork, total, limit }: NobodyLimits & { limit: number }
): Promise<number> {
  const [network, keep] = source === 'all'
    ? [sql`''`, sql`${total}::integer`]
    : [
        byVersion(source, ({ bits }) => sql`network(set_masklen(address::inet, ${bits}::integer))::text`, sql`address`),
        byVersion(source, (of) => sql`${limitOf(of, perNetwork, total)}::integer`, sql`${perNetwork}::integer`),
      ]
  const half = sql`ceil(keep / 2.0)`
  const { numDeletedRows } = await replanned(db)
    .with('entries', (cte) => cte.selectFrom('audit').select(['id', 'action', network.as('network'), keep.as('keep')])
      .where('user_id', 'is', null).where('id', '>=', lowestIdWithin(db, DAY)))
    .with('ranked', (cte) => cte.selectFrom('entries').select([
      'id', 'keep', sql<number>`row_number() over (partition by action, network order by id)`.as('rank'),
      sql<number>`count(*) over (partition by action, network)`.as('count'),
    ]))
    .with('beyond', (cte) => cte.selectFrom('audit').select('id')
      .where('id', '=', ({ selectFrom }) => anyOf(selectFrom('ranked').select('id')
        .where(sql<boolean>`rank > ${half} and rank <= count - ${half}`).orderBy('id').limit(limit)))
      .orderBy('id').forUpdate().skipLocked())
    .deleteFrom('audit').where('id', '=', ({ selectFrom }) => anyOf(selectFrom('beyond').select('id')))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

type Prefix = typeof PREFIXES['ipv4' | 'ipv6'][number]

// Returns an expression for the address of an entry. What is no address is one network.
const byVersion = (
  { ipv4, ipv6 }: { ipv4: Prefix, ipv6: Prefix }, express: (prefix: Prefix) => RawBuilder<unknown>,
  other: RawBuilder<unknown>
) => sql`case when address like '%:%' then ${express(ipv6)} when address like '%.%' then ${express(ipv4)} else ${other} end`
