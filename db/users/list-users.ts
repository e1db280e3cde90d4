import { sql, type RawBuilder, type SelectExpression, type SelectQueryBuilder } from 'kysely'
import { toAsciiSearch } from '../../schema/strings/address.ts'
import type { Role, UserKind } from '../../schema/users/users.ts'
import type { UserSort } from '../../schema/users/user-list.ts'
import { noFields, type UserFields } from '../../schema/users/user-fields.ts'
import { schemaOf } from '../driver/postgres.ts'
import { mayBeLarge, sizeOfFields, takeFitting } from '../fields/page-size.ts'
import type { Database, Tables, UserRow } from '../tables/index.ts'
import { userColumns } from './columns.ts'
import {
  emailKey, hasEmail, isFoundBy, keyOfEmail, keyOfName, nameKey, searchFor, wordsOf,
} from './user-keys.ts'
import { asksForRoleOfHost, hasRoleOfHost, statesOf, userState } from './user-states.ts'
import { findUsers } from './users.ts'

/** The position of a user in a list: the id, and the name or address that the list is sorted by. */
export interface UserPlace { readonly id: string, readonly key?: string | undefined }

export interface ListUsersQuery {
  role?: string | undefined
  /** Only the user with this address. */
  email?: string | undefined
  /** Only users of whose name or address some word has this prefix. */
  q?: string | undefined
  /**
   * Whose addresses `email` and `q` may find: everybody's, or only that of the user with this id. By default nobody's.
   */
  addresses?: { readonly of: string } | undefined
  kind?: UserKind | undefined
  disabled?: boolean | undefined
  emailVerified?: boolean | undefined
  /** Whether they have a confirmed authenticator app. */
  secondFactor?: boolean | undefined
  sort?: UserSort | undefined
  limit: number
  /** The last user of the previous page. */
  after?: UserPlace | undefined
  /** The members to read; others are absent. By default all. The id, the version and the sort key are always read. */
  members?: readonly string[] | undefined
}

/** The value of `addresses.of` if everybody's addresses may be found. */
export const EVERYBODY = '*'

/** A page of users. Do not modify it, because several requests may share it. */
export interface UserPage {
  readonly rows: readonly UserRow[]
  /** The position of the last user if another page follows, otherwise null. */
  readonly next: UserPlace | null
}

// A search first looks through this many users for each one of the page, in the order of the list. This finds the page
// of a frequent prefix. The page of a rare one is found by the index of words. If too many users have the words of a
// search, but few have them in its order, it looks through a longer part of the list, and its next page begins where
// that part ends.
const WINDOW = 20
const CANDIDATES = 5000
const LONG_WINDOW = 5000

const MIN_ID = '00000000-0000-0000-0000-000000000000'
const MAX_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Returns the position of a user in a list. */
export const placeOf = ({ id, name, email }: UserRow, sort?: UserSort): UserPlace =>
  sort?.endsWith('name') ? { id, key: name } : sort?.endsWith('email') ? { id, key: email } : { id }

/**
 * Returns a page of users, by default newest first, by keyset. Ids are UUIDv7, so they are in the order of creation.
 */
export async function listUsers (db: Database, query: ListUsersQuery, fields = noFields): Promise<UserPage> {
  const { limit, members, sort = '' } = query
  const isRead = (name: string) => members === undefined || members.includes(name)
  const read = members ? fields.filter(({ name }) => isRead(name)) : fields
  if (mayBeLarge(read, limit + 1)) return listLargeUsers(db, query, fields, read)
  const always = ['users.id', 'users.row_version as rowVersion', `users.${sort.replace('-', '')}`]
  const columns = userColumns(read).filter((column) =>
    typeof column !== 'string' || always.includes(column) || isRead(column.replace(/^users\.(.* as )?/, '')))
  const { rows, end } = await select<UserRow>(db, query, columns)
  return rows.length > limit
    ? { rows: rows.slice(0, limit), next: placeOf(rows[limit - 1]!, query.sort) }
    : { rows, next: end ?? null }
}

/** Counts the users of a list without a search, up to `max`, from an index. */
export async function countUsers (
  db: Database, query: Omit<ListUsersQuery, 'q' | 'after' | 'limit' | 'sort' | 'members'>, max: number
): Promise<number> {
  const all = { ...query, limit: max }
  const { count } = await db.selectFrom(inOrder(db, selectFrom(db, all, { max }), all).select('id').limit(max).as('some'))
    .select(sql<number>`count(*)::integer`.as('count')).executeTakeFirstOrThrow()
  return count
}

type Columns = readonly SelectExpression<Tables, 'users'>[]

/** The rows of a page, and one more if there is one. `end` is where a search has stopped that has found fewer. */
interface Found<Row> { rows: Row[], end?: UserPlace }

async function select<Row> (db: Database, query: ListUsersQuery, columns: Columns): Promise<Found<Row>> {
  const { q, email, limit } = query
  if (q === undefined || email !== undefined) {
    const all = selectFrom(db, query, { max: limit + 1 }).$if(q !== undefined, (from) => from.where(isFound(db, query)))
    return { rows: await inOrder(db, all, query).select(columns).limit(limit + 1).execute() as Row[] }
  }
  const length = WINDOW * (limit + 1)
  const first = inOrder(db, selectKeyed(db, query, { max: length }), query).limit(length)
  const near = await filter<Row>(db, query, columns, first)
  if (near.length > limit) return { rows: near }
  // A short list, such as that of a rare filter, is looked through. No index of words is as fast.
  const end = await findEnd(db, query, length)
  if (!end) return { rows: await filter<Row>(db, query, columns, selectKeyed(db, query, { max: 2 * length })) }
  return await searchByWords<Row>(db, query, columns) ?? await searchInOrder<Row>(db, query, columns)
}

// Finds users by the index of words. Returns undefined if too many have the words of the search.
async function searchByWords<Row> (
  db: Database, query: ListUsersQuery, columns: Columns
): Promise<Found<Row> | undefined> {
  const { key, direction } = orderOf(db, query)
  // Without the first table expression, PostgreSQL would take the limit as a reason to walk through all users.
  const rows = await db
    .with((cte) => cte('matching').materialized(), (cte) =>
      cte.selectFrom('users').selectAll().where(search(db, query)))
    .with((cte) => cte('candidates').materialized(), (cte) => cte.selectFrom('matching').selectAll()
      .limit(CANDIDATES + 1))
    .selectFrom((from) => from.selectFrom('candidates').select(sql<number>`count(*)::int`.as('total_')).as('totals'))
    .leftJoin((from) => restrict(db, from.selectFrom(sql<Tables['users']>`candidates`.as<'users'>(sql`users`)), query)
      .select(columns).select(key.as('sort_key_'))
      // If there are too many, none of them is looked at.
      .where(sql<boolean>`(select count(*) from candidates) <= ${CANDIDATES}::integer`).where(isFound(db, query))
      .orderBy('sort_key_', direction).orderBy('id', direction).limit(query.limit + 1).as('found'),
    (join) => join.onTrue())
    .selectAll('found').select('total_').orderBy('found.sort_key_', direction)
    .orderBy('found.id' as never, direction).execute()
  if (rows[0]!.total_ > CANDIDATES) return
  return {
    rows: rows.filter((row) => row.sort_key_ !== null).map(({ total_: _, sort_key_: __, ...row }) => row as Row),
  }
}

// Looks through a part of the list. Its end is read first, because the users may change meanwhile.
async function searchInOrder<Row> (db: Database, query: ListUsersQuery, columns: Columns): Promise<Found<Row>> {
  const end = await findEnd(db, query, LONG_WINDOW)
  const rows = await filter<Row>(db, query, columns, selectKeyed(db, query, { upTo: end, max: 2 * LONG_WINDOW }))
  return end && rows.length <= query.limit ? { rows, end } : { rows }
}

// Returns the position of the user at which a part of the list ends, or undefined if the list is shorter.
async function findEnd (db: Database, query: ListUsersQuery, length: number): Promise<UserPlace | undefined> {
  const last = await inOrder(db, selectFrom(db, query, { max: length }), query).select(['id', 'name', 'email'])
    .offset(length - 1).limit(1).executeTakeFirst()
  return last && placeOf(last as UserRow, query.sort)
}

/**
 * Which part of a list is read: at most `max` users of each state, and those up to a position; otherwise all. Where the
 * part is known to be shorter, twice its length leaves room for users who are created meanwhile. Without a limit,
 * PostgreSQL may prefer to walk through all users.
 */
interface Part { max?: number, upTo?: UserPlace | undefined }

const selectKeyed = (db: Database, query: ListUsersQuery, part?: Part) =>
  selectFrom(db, query, part).selectAll('users').select(orderOf(db, query).key.as('sort_key_'))

// Returns the users of a part of the list that a search finds, and are on its page.
async function filter<Row> (
  db: Database, query: ListUsersQuery, columns: Columns, from: ReturnType<typeof selectKeyed>
): Promise<Row[]> {
  const { direction } = orderOf(db, query)
  return await db.selectFrom(from.as('users')).select(columns).where(isFound(db, query))
    .orderBy('sort_key_', direction).orderBy('id', direction).limit(query.limit + 1).execute() as Row[]
}

function selectFrom (db: Database, query: ListUsersQuery, part: Part = {}) {
  const { upTo } = part
  const from = hasState(query) ? db.selectFrom(ofStates(db, query, part).as('users')) : db.selectFrom('users')
  return restrict(db, from, query).$if(upTo !== undefined, (from) => from.where(orderOf(db, query).precedes(upTo!)))
}

// With one address, there is at most one user.
const hasState = ({ kind, disabled, emailVerified, secondFactor, email }: ListUsersQuery): boolean =>
  email === undefined && [kind, disabled, emailVerified, secondFactor].some((one) => one !== undefined)

/**
 * Returns the users of the states that a query asks for. The index has their states before their ids, so that each
 * state is read from where its part of the list begins: a page reads a few users of each, however rare they are.
 */
function ofStates (db: Database, query: ListUsersQuery, { max, upTo }: Part): RawBuilder<Tables['users']> {
  const { direction } = orderOf(db, query)
  const isDescending = direction === 'desc'
  const [order, { after }] = [sql.raw(direction), query]
  const [first, last] = isDescending ? [upTo?.id, after?.id] : [after?.id, upTo?.id]
  const [above, below] = isDescending || !after ? [sql`>=`, after ? sql`<` : sql`<=`] : [sql`>`, sql`<=`]
  const limit = max === undefined ? sql`` : sql`order by ${userState} ${order}, id ${order} limit ${max}::integer`
  // These have an index of their own, whose first column is the role.
  const ofRole = asksForRoleOfHost(query) ? sql`role = ${query.role}::text and ${hasRoleOfHost} and` : sql``
  // Comparisons of both columns, because PostgreSQL would search the index for the first one only, and could choose the
  // index of ids for equal states.
  return sql`(select of_state.* from unnest(${`{${statesOf(query).join()}}`}::text::integer[]) as states(state)
    cross join lateral (select * from ${sql.id(schemaOf(db), 'users')}
      where ${ofRole} (${userState}, id) ${above} (state, ${first ?? MIN_ID}::uuid)
        and (${userState}, id) ${below} (state, ${last ?? MAX_ID}::uuid) ${limit}) as of_state)`
}

function restrict<Output> (db: Database, from: SelectQueryBuilder<Tables, 'users', Output>, query: ListUsersQuery) {
  const { role, email, kind, disabled, emailVerified, secondFactor, addresses, after } = query
  return from
    .$if(kind !== undefined, (from) => from.where('account_kind', '=', kind!))
    .$if(disabled !== undefined, (from) => from.where('disabled', '=', disabled!))
    .$if(emailVerified !== undefined, (from) => from.where('email_verified', '=', emailVerified!))
    .$if(secondFactor !== undefined, (from) => from.where('has_app', '=', secondFactor!))
    .$if(role !== undefined, (from) => from.where('role', '=', role as Role))
    .$if(email !== undefined, (from) => from.where(ofVisible(addresses, hasEmail(email!))))
    .$if(after !== undefined, (from) => from.where(orderOf(db, query).follows(after!)))
}

const inOrder = <Output>(db: Database, from: SelectQueryBuilder<Tables, 'users', Output>, query: ListUsersQuery) => {
  const { key, direction, hasId } = orderOf(db, query)
  return from.orderBy(key, direction).$if(hasId, (from) => from.orderBy('id', direction))
}

function orderOf (db: Database, { sort = '-createdAt' }: ListUsersQuery) {
  const isDescending = sort.startsWith('-')
  const direction = isDescending ? 'desc' as const : 'asc' as const
  const [after, upTo] = isDescending ? [sql`<`, sql`>=`] : [sql`>`, sql`<=`]
  const ordered = (
    key: RawBuilder<unknown>, hasId: boolean,
    compare: (operator: RawBuilder<unknown>, place: UserPlace) => RawBuilder<boolean>
  ) => ({
    key,
    hasId,
    direction,
    /** Whether a user comes after a place. */
    follows: (place: UserPlace) => compare(after, place),
    /** Whether a user comes before a place or has it. */
    precedes: (place: UserPlace) => compare(upTo, place),
  })
  if (sort.endsWith('name')) {
    const schema = schemaOf(db)
    const own = nameKey(schema)
    return ordered(own, true, (operator, { id, key }) =>
      sql`(${own}, id) ${operator} (${keyOfName(schema, sql`${key}::text`)}, ${id}::uuid)`)
  }
  // Addresses are unique.
  if (sort.endsWith('email')) {
    return ordered(
      emailKey, false, (operator, { key }) => sql`${emailKey} ${operator} ${keyOfEmail(sql`${key}::text`)}`
    )
  }
  return ordered(sql.ref('id'), false, (operator, { id }) => sql`id ${operator} ${id}::uuid`)
}

function ofVisible (addresses: ListUsersQuery['addresses'], condition: RawBuilder<boolean>): RawBuilder<boolean> {
  if (!addresses) return sql`false`
  return addresses.of === EVERYBODY ? condition : sql`(${condition} and id = ${addresses.of}::uuid)`
}

function isFound (db: Database, { q = '', addresses }: ListUsersQuery): RawBuilder<boolean> {
  const schema = schemaOf(db)
  const byAddress = isFoundBy(schema, emailKey, toAsciiSearch(q))
  return sql`(${isFoundBy(schema, nameKey(schema), q)} or ${ofVisible(addresses, byAddress)})`
}

function search (db: Database, { q = '', addresses }: ListUsersQuery): RawBuilder<boolean> {
  const schema = schemaOf(db)
  const found = (key: RawBuilder<unknown>, q: string) => sql<boolean>`${wordsOf(key)} @@ ${searchFor(schema, q)}`
  const names = found(nameKey(schema), q)
  if (!addresses) return names
  const visible = addresses.of === EVERYBODY ? found(emailKey, toAsciiSearch(q)) : sql`id = ${addresses.of}::uuid`
  return sql`(${names} or ${visible})`
}

// Reads the sizes of the rows first, so that a page of the largest values does not have to fit into memory.
async function listLargeUsers (
  db: Database, query: ListUsersQuery, fields: UserFields, read: UserFields
): Promise<UserPage> {
  const { rows: found, end } = await select<UserRow & { bytes: number }>(
    db, query, ['users.id', 'users.name', 'users.email', sizeOfFields('users', read).as('bytes')] as const
  )
  const fitting = takeFitting(found, query.limit)
  const rows = await findUsers(db, fitting.map(({ id }) => id), fields)
  // A user who was deleted meanwhile is left out.
  const next = fitting.length < found.length ? placeOf(fitting.at(-1)!, query.sort) : end ?? null
  return { rows: rows.filter((row) => row !== undefined), next }
}
