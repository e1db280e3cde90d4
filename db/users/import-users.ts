import { sql } from 'kysely'
import type { ImportedMembers, Role, UserKind } from '../../schema/users/members.ts'
import { noFields, type UserFields } from '../../schema/users/user-fields.ts'
import { foldEmail } from '../../schema/strings/address.ts'
import { auditColumns, type AuditContext } from '../audit/audit.ts'
import { entryColumns, withEntryEvents } from '../audit/events.ts'
import { idAt, newId } from '../driver/ids.ts'
import { userData, withEvents } from '../outbox/store.ts'
import { inOrder } from '../driver/postgres.ts'
import type { Database, UsersTable } from '../tables/index.ts'
import { textOf, userColumns, writableColumns, type OwnWritableColumn } from './columns.ts'
import { keyOfEmail } from './user-keys.ts'

/** A user of another system, with the values of the host's fields as further members. */
export interface ImportedUser extends Omit<ImportedMembers, keyof Settled>, Settled {}

/** What a line may lack and the import settles. */
interface Settled {
  /** The id that the user keeps, in lower case. */
  readonly id: string | undefined
  readonly emailVerified: boolean
  readonly role: Role
  readonly kind: UserKind
  readonly disabled: boolean
  /** In UTC, with microseconds (ISO 8601). */
  readonly createdAt: string | undefined
  readonly passwordHash: string | null
}

/**
 * Why a user was not imported: another one has the address or the id, the id is that of one who is being deleted, or
 * another one has a value that is unique for the host.
 */
export type ImportConflict = 'email' | 'id' | 'deleted' | 'field'

/**
 * Creates users of another system, their entries in the account log and their events, as one statement. No existing
 * user is changed. Returns undefined for each user that was created, in the order of `users`, and otherwise why it was
 * not. The first of several users with the same address or id is created.
 */
export async function importUsers (
  trx: Database, users: readonly ImportedUser[], context: AuditContext, fields: UserFields = noFields
): Promise<(ImportConflict | undefined)[]> {
  const results = new Map<ImportedUser, ImportConflict | undefined>()
  let left = users
  while (left.length > 0) {
    // One statement would not tell which one of two users with the same id it has created.
    const [first, others] = splitRepeated(left)
    for (const [index, conflict] of (await insertImported(trx, first, context, fields)).entries()) {
      results.set(first[index]!, conflict)
    }
    const conflicts = others.length === 0 ? [] : await findConflicts(trx, others)
    for (const [index, user] of others.entries()) results.set(user, conflicts[index])
    left = others.filter((_, index) => conflicts[index] === undefined)
  }
  return users.map((user) => results.get(user))
}

// Returns the users whose address and id no earlier one has, and the others.
function splitRepeated (users: readonly ImportedUser[]): [first: ImportedUser[], others: ImportedUser[]] {
  const seen = new Set<string>()
  const [first, others]: [ImportedUser[], ImportedUser[]] = [[], []]
  for (const user of users) {
    const keys = [foldEmail(user.email), ...user.id === undefined ? [] : [user.id]]
    if (keys.some((key) => seen.has(key))) {
      others.push(user)
    } else {
      first.push(user)
      for (const key of keys) seen.add(key)
    }
  }
  return [first, others]
}

async function insertImported (
  trx: Database, users: readonly ImportedUser[], context: AuditContext, fields: UserFields
): Promise<(ImportConflict | undefined)[]> {
  const ids = users.map(({ id, createdAt }) =>
    id ?? (createdAt === undefined ? newId(trx) : idAt(Date.parse(createdAt))))
  const columns = writableColumns(fields)
  // Their types are only known at runtime.
  const names = columns.map(({ column }) => column) as OwnWritableColumn[]
  const values = columns.map((column) =>
    sql`${users.map((user) => textOf(column, user[column.name as 'name']))}::${sql.raw(column.sqlType)}[]`)
  const all = <Name extends keyof ImportedUser> (name: Name) => users.map((user) => user[name])
  // The names have underscores, which names of fields cannot have.
  type Given = Pick<
    UsersTable, OwnWritableColumn | 'id' | 'password_hash'
  > & Record<'entry_id', string> & {
    kind: UserKind, is_verified: boolean, is_disabled: boolean, was_created: Date, place_given: string
  }
  const statement = trx
    .with('given', (cte) => cte.selectFrom(sql<Given>`unnest(
      ${ids}::uuid[], ${all('passwordHash')}::text[], ${all('kind')}::text[], ${all('emailVerified').map(String)}::boolean[],
      ${all('disabled').map(String)}::boolean[], ${all('createdAt').map((at) => at ?? null)}::timestamptz[],
      ${users.map(() => newId(trx))}::uuid[], ${sql.join(values)}
    ) with ordinality`.as<'given'>(sql`given(id, password_hash, kind, is_verified, is_disabled, was_created, entry_id,
      ${sql.join(names.map(sql.ref))}, place_given)`)).selectAll())
    .with('created', (cte) => cte.insertInto('users')
      .columns(['id', 'password_hash', 'account_kind', 'email_verified', 'disabled', 'created_at', ...names])
      .expression(({ selectFrom }) => selectFrom('given')
        .select(['id', 'password_hash', 'given.kind', 'is_verified', 'is_disabled'])
        .select(sql<Date>`coalesce(was_created, now())`.as('created_at')).select(names)
        // Their posts and uploads are still there, and would become those of the new user.
        .where(({ not, exists, selectFrom }) => not(exists(
          selectFrom('deleted_users').select('user_id').whereRef('user_id', '=', 'given.id')
        )))
        // Of several users with one value that is unique for the host, the first is created, whatever the plan is.
        .orderBy('place_given'))
      .onConflict((conflict) => conflict.doNothing())
      .returning(userColumns(fields)))
    .with('noted', (cte) => cte.insertInto('audit')
      .columns(auditColumns)
      .expression(({ selectFrom }) => selectFrom('given').innerJoin('created', 'created.id', 'given.id').select([
        'given.entry_id', sql.lit('user.import').as('action'), sql<string | null>`${context.actorId}::uuid`.as('actor_id'),
        'given.id', sql<string | null>`${context.sessionId}::uuid`.as('session_id'),
        sql<string>`${context.address}::text`.as('address'), sql<string>`${context.userAgent}::text`.as('user_agent'),
      ])).returning(entryColumns))
  const created = withEvents(withEntryEvents(statement, trx, ['noted']), trx, 'user.created', {
    from: 'created', subject: 'created.id', data: userData('created', sql`${context.actorId}::uuid`),
  })
  const rows = inOrder(ids, await created.selectFrom('created').select('created.id').execute())
  if (rows.every((row) => row !== undefined)) return rows.map(() => undefined)
  const refused = users.flatMap((user, index) => rows[index] ? [] : [user])
  const conflicts = await findConflicts(trx, refused)
  return users.map((user, index) => rows[index] ? undefined : conflicts[refused.indexOf(user)] ?? 'field')
}

/** Returns why users cannot be imported, in the order of `users`: undefined for those that can. */
export async function findConflicts (
  db: Database, users: readonly Pick<ImportedUser, 'id' | 'email'>[]
): Promise<(ImportConflict | undefined)[]> {
  const ids = users.flatMap(({ id }) => id ?? [])
  const keys = users.map(({ email }) => foldEmail(email))
  const [found, deleted] = await Promise.all([
    db.selectFrom('users').select(['id', keyOfEmail(sql`email`).as('key')])
      .where(({ or, eb }) => or([
        eb('id', '=', sql<string>`any(${ids}::uuid[])`), eb(keyOfEmail(sql`email`), '=', sql<string>`any(${keys}::text[])`),
      ])).execute(),
    db.selectFrom('deleted_users').select('user_id as id').where('user_id', '=', sql<string>`any(${ids}::uuid[])`).execute(),
  ])
  const taken = { ids: new Set(found.map(({ id }) => id)), keys: new Set(found.map(({ key }) => key)) }
  const leaving = new Set(deleted.map(({ id }) => id))
  return users.map(({ id }, index) => {
    if (taken.keys.has(keys[index]!)) return 'email'
    if (id !== undefined && taken.ids.has(id)) return 'id'
    return id !== undefined && leaving.has(id) ? 'deleted' : undefined
  })
}

/**
 * Creates a table, in a transaction, with the addresses and ids of a file, to find those that occur twice without
 * importing anybody. It is dropped with the transaction, and no other session sees it.
 */
export async function createSeenUsers (trx: Database): Promise<void> {
  await sql`create temporary table usher_seen_users (email text primary key, id uuid unique) on commit drop`.execute(trx)
}

/** Does what `importUsers` does, but imports nobody: it stores addresses and ids in the table of `createSeenUsers`. */
export async function checkUsers (
  trx: Database, users: readonly ImportedUser[]
): Promise<(ImportConflict | undefined)[]> {
  const conflicts = await findConflicts(trx, users)
  const free = users.filter((_, index) => conflicts[index] === undefined)
  const { rows } = await sql<{ email: string }>`
    insert into pg_temp.usher_seen_users (email, id)
    select email, id from unnest(${free.map(({ email }) => foldEmail(email))}::text[], ${free.map(({ id }) => id ?? null)}::uuid[])
      with ordinality given(email, id, place) order by place
    on conflict do nothing returning email`.execute(trx)
  const left = new Set(rows.map(({ email }) => email))
  const { rows: seen } = rows.length === free.length
    ? { rows: [] }
    : await sql<{ email: string }>`select email from pg_temp.usher_seen_users
        where email = any(${free.map(({ email }) => foldEmail(email))}::text[])`.execute(trx)
  const addresses = new Set(seen.map(({ email }) => email))
  return users.map(({ email }, index) => {
    const key = foldEmail(email)
    // The first one with an address is the one that was inserted.
    if (conflicts[index] !== undefined || left.delete(key)) return conflicts[index]
    return addresses.has(key) ? 'email' : 'id'
  })
}
