import { sql } from 'kysely'
import { NIL } from 'uuid'
import { arrayOf, schemaOf } from '../driver/postgres.ts'
import type { Page } from '../tables/page.ts'
import type { Database } from '../tables/index.ts'
import { isFoundBy, nameKey, searchFor, wordsOf } from '../users/user-keys.ts'
import { memberColumns, type MemberRow } from './organizations.ts'

/** A list of members as it is requested. */
export interface ListMembersQuery {
  role?: string | undefined
  /** Only members of whose name some word has this prefix. */
  q?: string | undefined
  limit: number
  /** The id of the user who was last on the previous page. */
  after?: string | undefined
}

type Search = ListMembersQuery & { q: string }

// A search first looks through this many members in the order of the list, which finds the page of a frequent prefix,
// and all members of most organisations. The page of a rare one is found by the index of words. If too many users of
// the service have the words of a search, but few members, it looks through a longer part of the list, and the next
// page begins where that part ends (as in the list of users).
const WINDOW = 500
const CANDIDATES = 1000
const LONG_WINDOW = 2000

/** A page of the members of an organisation: JSON. A text, so that equal keys share one read of a batch. */
export type MembersKey = string

export const membersKey = (organizationId: string, { role, limit, after = NIL }: ListMembersQuery): MembersKey =>
  JSON.stringify([organizationId, role ?? null, limit, after] satisfies Asked)

type Asked = [organizationId: string, role: string | null, limit: number, after: string]

/** Returns pages of the members of organisations, in the order of the ids of their users, by one or two statements. */
export async function listMembersOf (db: Database, keys: readonly MembersKey[]): Promise<Page<MemberRow>[]> {
  const asked = keys.map((key) => JSON.parse(key) as Asked)
  const pages = keys.map((): MemberRow[] => [])
  // Those of a role are read from another index.
  for (const ofRole of [false, true]) {
    const places = [...asked.keys()].filter((place) => (asked[place]![1] !== null) === ofRole)
    if (places.length === 0) continue
    for (const { place, ...row } of await selectPages(db, places.map((place) => [place, ...asked[place]!]), ofRole)) {
      pages[place]!.push(row)
    }
  }
  return asked.map(([, , limit], place) => toPage(pages[place]!, limit))
}

async function selectPages (
  db: Database, asked: readonly [place: number, ...Asked][], ofRole: boolean
): Promise<(MemberRow & { place: number })[]> {
  const given = sql<{ place: number, org: string, role: string, max: number, after: string }>`unnest(
    ${arrayOf(asked.map(([place]) => place))}::integer[], ${arrayOf(asked.map(([, id]) => id))}::uuid[],
    ${asked.map(([, , role]) => role)}::text[], ${arrayOf(asked.map(([, , , limit]) => limit + 1))}::integer[],
    ${arrayOf(asked.map(([, , , , after]) => after))}::uuid[]
  )`.as<'given'>(sql`given(place, org, role, max, after)`)
  return db.selectFrom(given)
    .innerJoinLateral(({ selectFrom }) => selectFrom('memberships').selectAll('memberships')
      .whereRef('organization_id', '=', 'given.org').whereRef('user_id', '>', 'given.after')
      .$if(ofRole, (from) => from.whereRef('memberships.role', '=', 'given.role'))
      .orderBy('user_id').limit(sql<number>`given.max`).as('memberships'), (join) => join.onTrue())
    .innerJoin('users', 'users.id', 'memberships.user_id').select(memberColumns).select('given.place')
    .orderBy('given.place').orderBy('memberships.user_id').execute()
}

/** Returns a page of the members of an organisation whom a search finds, in the same order. */
export async function searchMembers (
  db: Database, organizationId: string, query: Search
): Promise<Page<MemberRow>> {
  const { q, limit } = query
  const near = await searchUpTo(db, organizationId, query, WINDOW)
  if (near.rows.length > limit || near.end === undefined) return toPage(near.rows, limit)
  const users = await findByWords(db, q)
  if (users.length <= CANDIDATES) return toPage(await select(db, organizationId, query, { users }), limit)
  const { rows, end = null } = await searchUpTo(db, organizationId, query, LONG_WINDOW)
  return rows.length > limit ? toPage(rows, limit) : { rows, next: end }
}

// Looks through a part of the list. Its end is read first, because members may be added meanwhile, and is undefined if
// the list is shorter.
async function searchUpTo (db: Database, organizationId: string, query: Search, length: number) {
  const last = await selectPart(db, organizationId, query).select('user_id').orderBy('user_id')
    .offset(length - 1).limit(1).executeTakeFirst()
  const end = last?.user_id
  return { rows: await select(db, organizationId, query, { upTo: end, max: 2 * length }), end }
}

// Returns the ids of users of the service who have the words of a search, at most one more than are looked at.
async function findByWords (db: Database, q: string): Promise<string[]> {
  const schema = schemaOf(db)
  // Without the table expression, PostgreSQL would take the limit as a reason to walk through all users.
  const rows = await db
    .with((cte) => cte('matching').materialized(), (cte) => cte.selectFrom('users').select('id')
      .where(sql<boolean>`${wordsOf(nameKey(schema))} @@ ${searchFor(schema, q)}`))
    .selectFrom('matching').select('id').limit(CANDIDATES + 1).execute()
  return rows.map(({ id }) => id)
}

/** Which members are looked at: `max` of them, those up to a user, those who are among some users. */
interface Part { max?: number, upTo?: string | undefined, users?: readonly string[] }

// Returns the members of a part of the list who are on its page, and one more if there is one.
async function select (
  db: Database, organizationId: string, query: Search, part: Part
): Promise<MemberRow[]> {
  const { q, limit } = query
  const schema = schemaOf(db)
  // The part is a subquery with a limit, so that PostgreSQL reads it first, whatever it knows of the tables.
  const members = selectPart(db, organizationId, query, part).selectAll().orderBy('user_id')
    .limit(part.max ?? CANDIDATES)
  return db.selectFrom(members.as('memberships')).innerJoin('users', 'users.id', 'memberships.user_id')
    .select(memberColumns)
    .where(isFoundBy(schema, nameKey(schema), q))
    .orderBy('user_id').limit(limit + 1).execute()
}

const selectPart = (
  db: Database, organizationId: string, { role, after }: Search, { upTo, users }: Part = {}
) => db.selectFrom('memberships').where('organization_id', '=', organizationId)
  .$if(role !== undefined, (from) => from.where('role', '=', role!))
  .$if(after !== undefined, (from) => from.where('user_id', '>', after!))
  .$if(upTo !== undefined, (from) => from.where('user_id', '<=', upTo!))
  .$if(users !== undefined, (from) => from.where('user_id', '=', sql<string>`any(${arrayOf(users!)}::uuid[])`))

const toPage = (rows: MemberRow[], limit: number): Page<MemberRow> => rows.length > limit
  ? { rows: rows.slice(0, limit), next: rows[limit - 1]!.userId }
  : { rows, next: null }
