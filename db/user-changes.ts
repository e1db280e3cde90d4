import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { AuditAction } from '../schema/audit.ts'
import { EmailTaken, LastAdmin, UserNotFound, type PatchUser, type ReplaceUser } from '../schema/user.ts'
import { auditColumns, type AuditContext } from './audit.ts'
import { isInTime } from './driver/write-in-time.ts'
import { isUuid, prepare, violates } from './postgres.ts'
import { deleteSessionsOf } from './sessions.ts'
import { userColumns, type Database, type UserRow } from './tables.ts'
import { writable } from './users.ts'

/** The members of a user to change. */
export type Changes = { [Name in keyof PatchUser]?: PatchUser[Name] | null }

/** Returns the changes that replace a user: members that are absent become null, but without a role, the role remains. */
export function replacementOf (user: ReplaceUser): Changes {
  return Object.fromEntries(writable.map(([name]) => [name, user[name] ?? (name === 'role' ? undefined : null)]))
}

// The columns that a change can set, with their types in SQL. Creating and replacing a user do not set all of them.
const changeable = [...writable, ['disabled', 'boolean']] as const satisfies [keyof Changes, string][]

/**
 * Changes the data of a user. Members that are undefined remain as they are. The same statement writes to the account log what it
 * changes of the address, the role and whether the user is disabled. A demotion of an admin ends the user's sessions, because their
 * tokens still contain the role `admin`. Disabling a user ends them as well, and revokes the links to set a password. Returns the
 * user and the ids of the ended sessions. Throws `UserNotFound`, `EmailTaken` or `LastAdmin`.
 *
 * @param until that of `isInTime`
 * @param confirm runs in the transaction of a change that ends sessions, before it is committed, and throws if it must not take effect
 */
export async function updateUser (
  db: Database, id: string, user: Changes, origin: AuditContext, until: string, confirm: () => Promise<void>
): Promise<{ user: UserRow, ended: string[] }> {
  if (!isUuid(id)) throw new UserNotFound()
  try {
    if (!user.disabled) {
      // Most updates demote no admin, so the first attempt is a single statement without a transaction.
      const changed = await update(db, user.role !== 'user')
      if (changed) return { user: changed, ended: [] }
      if (user.role !== 'user') throw new UserNotFound()
    }
    return await whileLocked(db, id, async (trx) => {
      const changed = (await update(trx, true))!
      if (user.disabled) await trx.deleteFrom('password_tokens').where('user_id', '=', id).execute()
      const ended = await deleteSessionsOf(trx, id)
      await confirm()
      return { user: changed, ended }
    })
  } catch (error) {
    throw violates(error, 'users_email') ? new EmailTaken() : error
  }

  async function update (db: Database, anyRole: boolean): Promise<UserRow | undefined> {
    const { actorId, sessionId, address, userAgent } = origin
    const values = changeable.map(([name]) => user[name]?.toString() ?? null)
    const kept = changeable.map(([name]) => name).filter((name) => user[name] === undefined)
    const [changed] = await change(db, id, anyRole, until, values, kept, actorId, sessionId, address, userAgent, notable.map(() => uuid()))
    return changed
  }
}

// Returns the value that `change` gives a column.
const newValueOf = (name: string, type: string, index: number) =>
  sql`case when ${sql.lit(name)} = any(given.kept) then ${sql.ref(`users.${name}`)} else given.values[${sql.lit(index + 1)}]::${sql.raw(type)} end`

// The changes that the account log records, each with the condition under which it took place.
const notable: [action: AuditAction, condition: string][] = [
  ['user.email-change', 'updated.email <> former.email'],
  ['user.role-change', 'updated.role <> former.role'],
  ['user.disable', 'updated.disabled > former.disabled'],
  ['user.enable', 'updated.disabled < former.disabled'],
]

// Changes the data of a user, and logs what is notable. Without `anyRole`, it only matches users with the role `user`.
const change = prepare((
  db, id: string, anyRole: boolean, until: string, values: readonly (string | null)[], kept: readonly string[],
  actor: string | null, session: string | null, address: string, agent: string, entries: readonly string[]
) => db
  // The row is locked, so that it is the state that this statement changes, even if a concurrent statement has just changed it.
  .with('former', (cte) => cte.selectFrom('users').select(['id', 'email', 'role', 'disabled'])
    .where('id', '=', id).where(sql<boolean>`(${anyRole}::boolean or role = 'user')`).where(isInTime(until)).forNoKeyUpdate())
  .with('given', (cte) => cte.selectNoFrom([sql<string[]>`${values}::text[]`.as('values'), sql<string[]>`${kept}::text[]`.as('kept')]))
  .with('updated', (cte) => cte.updateTable('users').from(['former', 'given']).whereRef('users.id', '=', 'former.id')
    .set({ ...Object.fromEntries(changeable.map(([name, type], index) => [name, newValueOf(name, type, index)])), updated_at: sql`now()` })
    .returning(userColumns.map((column) => `users.${column}` as const)))
  .with('noted', (cte) => cte.insertInto('audit').columns(auditColumns)
    .expression(({ selectFrom, val }) => selectFrom('updated').innerJoin('former', 'former.id', 'updated.id')
      .innerJoin(sql<{ entry: string, action: string }>`unnest(
        ${entries}::uuid[], array[${sql.join(notable.map(([action]) => sql.lit(action)))}]
      )`.as<'note'>(sql`note(entry, action)`), (join) => join.on(sql<boolean>`
        case note.action ${sql.raw(notable.map(([action, condition]) => `when '${action}' then ${condition}`).join(' '))} end`))
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
  return whileLocked(db, id, async (trx) => {
    const ended = await deleteSessionsOf(trx, id)
    await trx.deleteFrom('users').where('id', '=', id).execute()
    await also(trx)
    return ended
  })
}

/**
 * Runs a change that takes a user's permissions away in a transaction that has locked the user. Throws `UserNotFound`, and
 * `LastAdmin` if no admin would remain.
 */
async function whileLocked<Result extends object> (db: Database, id: string, change: (trx: Database) => Promise<Result>): Promise<Result> {
  // Most users are not admins, and then no other row needs a lock. The second attempt is a separate transaction: it has to lock the
  // admins in order, so it must not already hold the lock of one of them.
  return await attempt(lockMember) ?? (await attempt(lockWithAdmins))!

  async function attempt (lockUser: (trx: Database, id: string) => Promise<boolean>): Promise<Result | undefined> {
    return db.transaction().execute(async (trx) => await lockUser(trx, id) ? change(trx) : undefined)
  }
}

/** Locks a user who is not an admin until the transaction ends. Returns false if there is no such user. */
async function lockMember (trx: Database, id: string): Promise<boolean> {
  const user = await trx.selectFrom('users').select('id').where('id', '=', id).where('role', '=', 'user').forNoKeyUpdate().executeTakeFirst()
  return user !== undefined
}

/**
 * Locks a user who is about to be deleted, demoted or disabled, and all admins, until the transaction ends. The order is always the
 * same, so that two admins cannot remove each other at the same time. Throws `UserNotFound`, and `LastAdmin` if the user is the only
 * admin who is not disabled.
 */
async function lockWithAdmins (trx: Database, id: string): Promise<true> {
  const locked = await trx.selectFrom('users').select(['id', 'role', 'disabled'])
    .where(({ or, eb }) => or([eb('id', '=', id), eb('role', '=', 'admin')]))
    .orderBy('id').forNoKeyUpdate().execute()
  const user = locked.find((row) => row.id === id.toLowerCase())
  if (!user) throw new UserNotFound()
  const isAdmin = ({ role, disabled }: typeof user) => role === 'admin' && !disabled
  if (isAdmin(user) && locked.every((row) => row === user || !isAdmin(row))) throw new LastAdmin()
  return true
}
