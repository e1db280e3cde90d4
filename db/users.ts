import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { EmailTaken, LastAdmin, UserNotFound, type ReplaceUser, type Role } from '../schema/user.ts'
import { auditColumns, type AuditContext } from './audit.ts'
import { toPage, type Page } from './page.ts'
import { inOrder, isUuid, prepare, violates } from './postgres.ts'
import { deleteSessionsOf } from './sessions.ts'
import type { Row } from './row.ts'
import { userColumns, writableUserColumns, type Database, type UserRow, type UsersTable } from './tables.ts'
import { isInTime } from './driver/write-in-time.ts'

const selectUsers = prepare((db, ids: readonly string[]) => db.selectFrom('users').select(userColumns).where('id', '=', sql<string>`any(${ids}::uuid[])`))

/** Returns the users with these ids, in the same order. An id that is unknown or malformed yields `undefined`. */
export async function findUsers (db: Database, ids: readonly string[]): Promise<(UserRow | undefined)[]> {
  return inOrder(ids, await selectUsers(db, ids.filter(isUuid)))
}

export type Credentials = UserRow & Row<UsersTable, 'password_hash'>

/** Returns the user with this e-mail address, regardless of case, and the password hash to check a login against. */
export async function findCredentials (db: Database, email: string): Promise<Credentials | undefined> {
  return db.selectFrom('users').select([...userColumns, 'password_hash as passwordHash'])
    .where(sql<string>`lower(email)`, '=', sql<string>`lower(${email})`)
    .executeTakeFirst()
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

const writable = Object.entries(writableUserColumns) as [keyof typeof writableUserColumns, string][]
const writableNames = writable.map(([name]) => name)
const defaultOf = (name: string) => name === 'role' ? 'user' : null

/**
 * Creates users and their entries in the account log, as one statement. Returns the users in the order of `users`. A user whose
 * address is taken yields `EmailTaken` and does not affect the others.
 */
export async function insertUsers (db: Database, users: readonly (NewUser & { context: AuditContext })[]): Promise<(UserRow | Error)[]> {
  const ids = users.map(() => uuid())
  const context = <Name extends keyof AuditContext> (name: Name) => users.map((user) => user.context[name])
  const values = writable.map(([name, type]) => sql`${users.map((user) => user[name] ?? defaultOf(name))}::${sql.raw(type)}[]`)
  type Given = Pick<UsersTable, keyof typeof writableUserColumns | 'id' | 'password_hash'> & Record<'entry' | 'actor' | 'session' | 'address' | 'agent', string>
  const rows = await db
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
    .selectFrom('created').selectAll()
    .execute()
  return inOrder(ids, rows).map((row) => row ?? new EmailTaken())
}

/**
 * Replaces the data of a user. Without `role`, the role remains. The same statement writes a change of the address or the role to
 * the account log. A demotion of an admin ends the user's sessions, because their tokens still contain the role `admin`. Returns the
 * user and the ids of the ended sessions. Throws `UserNotFound`, `EmailTaken` or `LastAdmin`.
 *
 * @param until that of `isInTime`
 * @param confirm runs in the transaction of a demotion, before it is committed, and throws if it must not take effect
 */
export async function updateUser (
  db: Database, id: string, user: ReplaceUser, origin: AuditContext, until: string, confirm: () => Promise<void>
): Promise<{ user: UserRow, ended: string[] }> {
  if (!isUuid(id)) throw new UserNotFound()
  try {
    // Most updates demote no admin, so the first attempt is a single statement without a transaction.
    const replaced = await update(db, user.role !== 'user')
    if (replaced) return { user: replaced, ended: [] }
    if (user.role !== 'user') throw new UserNotFound()
    return await db.transaction().execute(async (trx) => {
      await lockWithAdmins(trx, id)
      const demoted = { user: (await update(trx, true))!, ended: await deleteSessionsOf(trx, id) }
      await confirm()
      return demoted
    })
  } catch (error) {
    throw violates(error, 'users_email') ? new EmailTaken() : error
  }

  async function update (db: Database, anyRole: boolean): Promise<UserRow | undefined> {
    const { actorId, sessionId, address, userAgent } = origin
    const values = writableNames.map((name) => user[name] ?? null)
    const [replaced] = await replace(db, id, anyRole, until, values, actorId, sessionId, address, userAgent, [uuid(), uuid()])
    return replaced
  }
}

// Returns the value that `replace` gives a column.
function newValueOf (name: string, type: string, index: number) {
  const value = sql`given.values[${sql.lit(index + 1)}]::${sql.raw(type)}`
  return name === 'role' ? sql`coalesce(${value}, users.role)` : value
}

// Replaces the data of a user, and logs a changed address or role. Without `anyRole`, it only matches users with the role `user`.
const replace = prepare((
  db, id: string, anyRole: boolean, until: string, values: readonly (string | null)[],
  actor: string | null, session: string | null, address: string, agent: string, entries: readonly string[]
) => db
  // The row is locked, so that it is the state that this statement replaces, even if a concurrent statement has just changed it.
  .with('former', (cte) => cte.selectFrom('users').select(['id', 'email', 'role'])
    .where('id', '=', id).where(sql<boolean>`(${anyRole}::boolean or role = 'user')`).where(isInTime(until)).forNoKeyUpdate())
  .with('given', (cte) => cte.selectNoFrom(sql<string[]>`${values}::text[]`.as('values')))
  .with('updated', (cte) => cte.updateTable('users').from(['former', 'given']).whereRef('users.id', '=', 'former.id')
    .set({ ...Object.fromEntries(writable.map(([name, type], index) => [name, newValueOf(name, type, index)])), updated_at: sql`now()` })
    .returning(userColumns.map((column) => `users.${column}` as const)))
  .with('noted', (cte) => cte.insertInto('audit').columns(auditColumns)
    .expression(({ selectFrom, val }) => selectFrom('updated').innerJoin('former', 'former.id', 'updated.id')
      .innerJoin(sql<{ entry: string, action: string }>`unnest(
        ${entries}::uuid[], array['user.email-change', 'user.role-change']
      )`.as<'note'>(sql`note(entry, action)`), (join) => join.on(sql<boolean>`
        case note.action when 'user.role-change' then updated.role <> former.role else updated.email <> former.email end`))
      .select([
        'note.entry', 'note.action', val(actor).as('actor'), 'updated.id as user',
        val(session).as('session'), val(address).as('address'), val(agent).as('agent'),
      ])))
  .selectFrom('updated').selectAll())

/**
 * Deletes a user and ends their sessions. Returns the ids of these sessions. From the commit on, the user's posts and uploads are
 * invisible; `purgeDeletedUsers` removes them. Throws `UserNotFound` or `LastAdmin`.
 * @param also runs in the same transaction, after the deletion
 */
export async function deleteUser (db: Database, id: string, also: (trx: Database) => Promise<void>): Promise<string[]> {
  if (!isUuid(id)) throw new UserNotFound()
  // Most users are not admins, and then no other row needs a lock. The second attempt is a separate transaction: it has to lock the
  // admins in order, so it must not already hold the lock of one of them.
  return await attempt(lockMember) ?? (await attempt(lockWithAdmins))!

  async function attempt (lockUser: (trx: Database, id: string) => Promise<boolean>): Promise<string[] | undefined> {
    return db.transaction().execute(async (trx) => {
      if (!await lockUser(trx, id)) return undefined
      const ended = await deleteSessionsOf(trx, id)
      await trx.deleteFrom('users').where('id', '=', id).execute()
      await also(trx)
      return ended
    })
  }
}

/** Locks a user who is not an admin until the transaction ends. Returns false if there is no such user. */
async function lockMember (trx: Database, id: string): Promise<boolean> {
  const user = await trx.selectFrom('users').select('id').where('id', '=', id).where('role', '=', 'user').forNoKeyUpdate().executeTakeFirst()
  return user !== undefined
}

/**
 * Locks a user who is about to be deleted or demoted, and all admins, until the transaction ends. The order is always the same, so
 * that two admins cannot remove each other at the same time. Throws `UserNotFound`, and `LastAdmin` if the user is the only admin.
 */
async function lockWithAdmins (trx: Database, id: string): Promise<true> {
  const locked = await trx.selectFrom('users').select(['id', 'role'])
    .where(({ or, eb }) => or([eb('id', '=', id), eb('role', '=', 'admin')]))
    .orderBy('id').forNoKeyUpdate().execute()
  const user = locked.find((row) => row.id === id.toLowerCase())
  if (!user) throw new UserNotFound()
  if (user.role === 'admin' && locked.every((row) => row === user || row.role !== 'admin')) throw new LastAdmin()
  return true
}
