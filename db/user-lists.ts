import { sql, type RawBuilder, type SelectExpression, type SelectQueryBuilder } from 'kysely'
import type { Role } from '../schema/user.ts'
import type { UserSort } from '../schema/user-list.ts'
import { noFields, type UserFields } from '../schema/user-fields.ts'
import type { Database, Tables, UserRow } from './tables.ts'
import { userColumns } from './user-columns.ts'
import { emailKey, hasPrefix, keyOfEmail, keyOfName, nameKey, searchedName, searchFor, wordsOf } from './user-keys.ts'
import { findUsers } from './users.ts'

/** The position of a user in a list: the id, and the name or address that the list is sorted by. */
export interface UserPlace { readonly id: string, readonly key?: string | undefined }

export interface ListUsersQuery {
  role?: string | undefined
  /** Only the user with this address. */
  email?: string | undefined
  /** Only users of whose name or address some word has this prefix. */
  q?: string | undefined
  /** Whose addresses `email` and `q` may find: everybody's, or only that of the user with this id. By default nobody's. */
  addresses?: { readonly of: string } | undefined
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

// The size of a page, in bytes of fields of the host. A page with larger ones has fewer rows.
const PAGE_BYTES = 4 * 1024 * 1024

// A search first looks through this many users for each one of the page, in the order of the list. This finds the page of a frequent
// prefix. If it does not, the prefix is rare enough for the index of words.
const WINDOW = 20

/** Returns the position of a user in a list. */
export const placeOf = ({ id, name, email }: UserRow, sort?: UserSort): UserPlace =>
  sort?.endsWith('name') ? { id, key: name } : sort?.endsWith('email') ? { id, key: email } : { id }

/** Returns a page of users, by default newest first, by keyset. Ids are UUIDv7, so they are in the order of creation. */
export async function listUsers (db: Database, query: ListUsersQuery, fields = noFields): Promise<UserPage> {
  const { limit, members, sort = '' } = query
  const isRead = (name: string) => members === undefined || members.includes(name)
  const read = members ? fields.filter(({ name }) => isRead(name)) : fields
  if (read.reduce((sum, { bytes }) => sum + bytes, 0) * (limit + 1) > PAGE_BYTES) return listLargeUsers(db, query, fields, read)
  const always = ['users.id', 'users.row_version as rowVersion', `users.${sort.replace('-', '')}`]
  const columns = userColumns(read).filter((column) => typeof column !== 'string' || always.includes(column) || isRead(column.replace(/^users\.(.* as )?/, '')))
  const rows: UserRow[] = await select(db, query, columns)
  return rows.length > limit ? { rows: rows.slice(0, limit), next: placeOf(rows[limit - 1]!, query.sort) } : { rows, next: null }
}

type Columns = readonly SelectExpression<Tables, 'users'>[]

async function select<Row> (db: Database, query: ListUsersQuery, columns: Columns): Promise<Row[]> {
  const { q, email, limit } = query
  if (q === undefined || email !== undefined) {
    const all = selectFrom(db, query).$if(q !== undefined, (from) => from.where(isFound(query)))
    return await inOrder(all, query).select(columns).limit(limit + 1).execute() as Row[]
  }
  const { key, direction } = orderOf(query)
  const searched = selectFrom(db, query).selectAll('users').select(key.as('sort_key_'))
  const read = async (from: typeof searched) => await db.selectFrom(from.as('users')).select(columns).where(isFound(query))
    .orderBy('sort_key_', direction).orderBy('id', direction).limit(limit + 1).execute() as Row[]
  const rows = await read(inOrder(searched, query).limit(WINDOW * (limit + 1)))
  // The offset keeps PostgreSQL from walking through the whole list instead of using the index of words.
  return rows.length > limit ? rows : await read(searched.where(search(query)).offset(0))
}

const selectFrom = (db: Database, query: ListUsersQuery) => {
  const { role, email, addresses, after } = query
  return db.selectFrom('users')
    .$if(role !== undefined, (from) => from.where('role', '=', role as Role))
    .$if(email !== undefined, (from) => from.where(ofVisible(addresses, sql`${emailKey} = lower(${email})`)))
    .$if(after !== undefined, (from) => from.where(orderOf(query).follows(after!)))
}

const inOrder = <Output>(from: SelectQueryBuilder<Tables, 'users', Output>, query: ListUsersQuery) => {
  const { key, direction, hasId } = orderOf(query)
  return from.orderBy(key, direction).$if(hasId, (from) => from.orderBy('id', direction))
}

function orderOf ({ sort = '-createdAt' }: ListUsersQuery) {
  const isDescending = sort.startsWith('-')
  const direction = isDescending ? 'desc' as const : 'asc' as const
  const than = sql.raw(isDescending ? '<' : '>')
  const ordered = (key: RawBuilder<unknown>, hasId: boolean, follows: (place: UserPlace) => RawBuilder<boolean>) => ({ key, hasId, direction, follows })
  if (sort.endsWith('name')) {
    return ordered(nameKey, true, ({ id, key }) => sql`(${nameKey}, id) ${than} (${keyOfName(sql`${key}::text`)}, ${id}::uuid)`)
  }
  // Addresses are unique.
  if (sort.endsWith('email')) return ordered(emailKey, false, ({ key }) => sql`${emailKey} ${than} ${keyOfEmail(sql`${key}::text`)}`)
  return ordered(sql.ref('id'), false, ({ id }) => sql`id ${than} ${id}::uuid`)
}

function ofVisible (addresses: ListUsersQuery['addresses'], condition: RawBuilder<boolean>): RawBuilder<boolean> {
  if (!addresses) return sql`false`
  return addresses.of === EVERYBODY ? condition : sql`(${condition} and id = ${addresses.of}::uuid)`
}

// Without a letter or digit, a search finds nobody, because the index has words only.
const isFound = ({ q, addresses }: ListUsersQuery): RawBuilder<boolean> =>
  sql`(${searchFor(q!)} is not null and (${hasPrefix(searchedName, q!)} or ${ofVisible(addresses, hasPrefix(emailKey, q!))}))`

function search ({ q, addresses }: ListUsersQuery): RawBuilder<boolean> {
  const query = searchFor(q!)
  const names = sql<boolean>`${wordsOf(searchedName)} @@ ${query}`
  if (!addresses) return names
  return sql`(${names} or ${addresses.of === EVERYBODY ? sql`${wordsOf(emailKey)} @@ ${query}` : sql`id = ${addresses.of}::uuid`})`
}

// Reads the sizes of the rows first, so that a page of the largest values does not have to fit into memory.
async function listLargeUsers (db: Database, query: ListUsersQuery, fields: UserFields, read: UserFields): Promise<UserPage> {
  const sizes = read.map(({ name }) => sql`coalesce(octet_length(${sql.ref(`users.${name}`)}::text), 0)`)
  const size = sql<number>`${sql.join(sizes, sql` + `)}`.as('bytes')
  const found = await select<UserRow & { bytes: number }>(db, query, ['users.id', 'users.name', 'users.email', size] as const)
  let bytes = 0
  const fitting = found.slice(0, query.limit).filter(({ bytes: more }, index) => (bytes += more) <= PAGE_BYTES || index === 0)
  const rows = await findUsers(db, fitting.map(({ id }) => id), fields)
  // A user who was deleted meanwhile is left out.
  return { rows: rows.filter((row) => row !== undefined), next: fitting.length < found.length ? placeOf(fitting.at(-1)!, query.sort) : null }
}
