import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { EmailTaken, type ReplaceUser, type Role } from '../schema/user.ts'
import { auditColumns, type AuditContext } from './audit.ts'
import { storing, userData } from './outbox/store.ts'
import { toPage, type Page } from './page.ts'
import { inOrder, isUuid, prepare } from './postgres.ts'
import type { Row } from './row.ts'
import { userColumns, writableUserColumns, type Database, type UserRow, type UsersTable } from './tables.ts'

const selectUsers = prepare((db, ids: readonly string[]) => db.selectFrom('users').select(userColumns).where('id', '=', sql<string>`any(${ids}::uuid[])`))

/** Returns the users with these ids, in the same order. An id that is unknown or malformed yields `undefined`. */
export async function findUsers (db: Database, ids: readonly string[]): Promise<(UserRow | undefined)[]> {
  return inOrder(ids, await selectUsers(db, ids.filter(isUuid)))
}

/** Returns the users with these e-mail addresses, regardless of case, in the same order. An unknown address yields `undefined`. */
export async function findUsersByEmail (db: Database, emails: readonly string[]): Promise<(UserRow | undefined)[]> {
  const rows = await db
    .selectFrom(sql<{ given: string, place: number }>`unnest(${emails}::text[], ${emails.map((_, place) => place)}::int[])`.as<'asked'>(sql`asked(given, place)`))
    .innerJoin('users', (join) => join.on(sql<boolean>`lower(users.email) = lower(asked.given)`))
    .select(userColumns.map((column) => `users.${column}` as const)).select('asked.place')
    .execute()
  const found: (UserRow | undefined)[] = emails.map(() => undefined)
  for (const { place, ...user } of rows) found[place] = user
  return found
}

export type Credentials = UserRow & Row<UsersTable, 'password_hash'>

/** Returns the user with this e-mail address, regardless of case, and the password hash to check a login against. */
export async function findCredentials (db: Database, email: string): Promise<Credentials | undefined> {
  return db.selectFrom('users').select([...userColumns, 'password_hash as passwordHash'])
    .where(sql<string>`lower(email)`, '=', sql<string>`lower(${email})`)
    .executeTakeFirst()
}

/**
 * Locks a user until the transaction ends, so that changes of the same user run one after the other. Every transaction that changes an
 * account takes this lock first. Returns undefined if there is no such user.
 */
export async function lockUser (trx: Database, id: string): Promise<Row<UsersTable, 'email' | 'email_verified' | 'disabled'> | undefined> {
  return trx.selectFrom('users').select(['email', 'email_verified as emailVerified', 'disabled'])
    .where('id', '=', id).forNoKeyUpdate().executeTakeFirst()
}

/** Replaces a user's password hash, unless it is no longer `from`. Returns whether it was replaced. */
export async function updatePasswordHash (db: Database, id: string, from: string, to: string): Promise<boolean> {
  const { numUpdatedRows } = await db.updateTable('users').set({ password_hash: to })
    .where('id', '=', id).where('password_hash', '=', from).executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

export interface ListUsersQuery {
  role?: string | undefined
  limit: number
  /** The id of the last user of the previous page. */
  after?: string | undefined
}

/** Returns a page of users, newest first, by keyset. Ids are UUIDv7, so they are in the order of creation. */
export async function listUsers (db: Database, { role, limit, after }: ListUsersQuery): Promise<Page<UserRow>> {
  const rows = await db.selectFrom('users').select(userColumns)
    .$if(role !== undefined, (query) => query.where('role', '=', role as Role))
    .$if(after !== undefined, (query) => query.where('id', '<', after!))
    .orderBy('id', 'desc').limit(limit + 1)
    .execute()
  return toPage(rows, limit)
}

export interface NewUser extends ReplaceUser {
  passwordHash?: string | null | undefined
}

/** The writable columns of users with their types in SQL. */
export const writable = Object.entries(writableUserColumns) as [keyof typeof writableUserColumns, string][]
const writableNames = writable.map(([name]) => name)
const defaultOf = (name: string) => name === 'role' ? 'user' : null

/**
 * Creates users, their entries in the account log and their events, as one statement. Returns the users in the order of `users`. A user whose
 * address is taken yields `EmailTaken` and does not affect the others.
 */
export async function insertUsers (db: Database, users: readonly (NewUser & { context: AuditContext })[]): Promise<(UserRow | Error)[]> {
  const ids = users.map(() => uuid())
  const context = <Name extends keyof AuditContext> (name: Name) => users.map((user) => user.context[name])
  const values = writable.map(([name, type]) => sql`${users.map((user) => user[name] ?? defaultOf(name))}::${sql.raw(type)}[]`)
  type Given = Pick<UsersTable, keyof typeof writableUserColumns | 'id' | 'password_hash'> & Record<'entry' | 'actor' | 'session' | 'address' | 'agent', string>
  const statement = db
    .with('given', (cte) => cte.selectFrom(sql<Given>`unnest(
      ${ids}::uuid[], ${users.map(({ passwordHash = null }) => passwordHash)}::text[], ${users.map(() => uuid())}::uuid[],
      ${context('actorId')}::uuid[], ${context('sessionId')}::uuid[], ${context('address')}::text[], ${context('userAgent')}::text[],
      ${sql.join(values)}
    )`.as<'given'>(sql`given(id, password_hash, entry, actor, session, address, agent, ${sql.join(writableNames.map(sql.ref))})`)).selectAll())
    .with('created', (cte) => cte.insertInto('users')
      .columns(['id', 'password_hash', ...writableNames])
      .expression(({ selectFrom }) => selectFrom('given').select(['id', 'password_hash', ...writableNames]))
      .onConflict((conflict) => conflict.expression(sql`lower(email)`).doNothing())
      .returning(userColumns))
    .with('noted', (cte) => cte.insertInto('audit')
      .columns(auditColumns)
      .expression(({ selectFrom }) => selectFrom('given').innerJoin('created', 'created.id', 'given.id')
        .select(['given.entry', sql.lit('user.create').as('action'), 'given.actor', 'given.id', 'given.session', 'given.address', 'given.agent'])))
  const from = 'created inner join given on given.id = created.id'
  const rows = await storing(statement, db, 'user.created', { from, subject: 'created.id', data: userData('created', 'given.actor') })
    .selectFrom('created').selectAll()
    .execute()
  return inOrder(ids, rows).map((row) => row ?? new EmailTaken())
}
