import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { InvalidToken } from '../schema/auth.ts'
import { EmailTaken, LastAdmin, UserNotFound, type PatchUser, type ReplaceUser } from '../schema/user.ts'
import { auditColumns, type AuditContext } from './audit.ts'
import { isInTime } from './driver/write-in-time.ts'
import { isUuid, prepare, violates } from './postgres.ts'
import { deleteSessionsOf } from './sessions.ts'
import { userColumns, type Database, type UserRow } from './tables.ts'
import { hasUndoRoom, undoColumns, undoExpiry } from './undo-tokens.ts'
import { writable } from './users.ts'

/** The members of a user to change. */
export type Changes = { [Name in keyof PatchUser]?: PatchUser[Name] | null }

/** Returns the changes that replace a user: members that are absent become null, but without a role, the role remains. */
export function replacementOf (user: ReplaceUser): Changes {
  return Object.fromEntries(writable.map(([name]) => [name, user[name] ?? (name === 'role' ? undefined : null)]))
}

/** How a change of a user is made. */
export interface ChangeContext extends AuditContext {
  /** That of `isInTime`. */
  until: string
  /** The hash of a token that undoes a change of the address; null if no mails can be sent. */
  undo: Uint8Array | null
}

/** A user after a change. */
export interface ChangedUser {
  user: UserRow
  /** The ids of the sessions that it has ended. */
  ended: string[]
  /** The former address, to which the link is to be sent that undoes the change, or null if there is no such link. */
  undoableBy: string | null
}

/**
 * Changes the data of a user. Members that are undefined remain as they are. The same statement writes a change of the address or
 * the role to the account log, and stores the token that undoes a change of the address. A demotion of an admin ends the user's
 * sessions, because their tokens still contain the role `admin`. Throws `UserNotFound`, `EmailTaken` or `LastAdmin`, and `InvalidToken`
 * if the address would change and the actor's session has ended, as it does when an earlier change is undone.
 *
 * @param confirm runs in the transaction of a demotion, before it is committed, and throws if it must not take effect
 */
export async function updateUser (
  db: Database, id: string, user: Changes, context: ChangeContext, confirm: () => Promise<void>
): Promise<ChangedUser> {
  if (!isUuid(id)) throw new UserNotFound()
  try {
    // Most updates demote no admin, so the first attempt is a single statement without a transaction.
    const changed = await update(db, user.role !== 'user')
    if (changed) return { ...changed, ended: [] }
    if (user.role !== 'user') throw await isUser(db, id) ? new InvalidToken() : new UserNotFound()
    return await db.transaction().execute(async (trx) => {
      await lockWithAdmins(trx, id)
      const demoted = await update(trx, true)
      if (!demoted) throw new InvalidToken()
      const ended = await deleteSessionsOf(trx, id)
      await confirm()
      return { ...demoted, ended }
    })
  } catch (error) {
    throw violates(error, 'users_email') ? new EmailTaken() : error
  }

  async function update (db: Database, anyRole: boolean): Promise<Omit<ChangedUser, 'ended'> | undefined> {
    const { actorId, sessionId, address, userAgent, until, undo } = context
    const values = writable.map(([name]) => user[name] ?? null)
    const kept = writable.map(([name]) => name).filter((name) => user[name] === undefined)
    const [changed] = await change(db, id, anyRole, until, values, kept, sessionId, undo, actorId, address, userAgent, [uuid(), uuid()])
    if (!changed) return undefined
    const { undoableBy, ...row } = changed
    return { user: row, undoableBy }
  }
}

async function isUser (db: Database, id: string): Promise<boolean> {
  return await db.selectFrom('users').select('id').where('id', '=', id).executeTakeFirst() !== undefined
}

// Returns the value that `change` gives a column.
const newValueOf = (name: string, type: string, index: number) =>
  sql`case when ${sql.lit(name)} = any(given.kept) then ${sql.ref(`users.${name}`)} else given.values[${sql.lit(index + 1)}]::${sql.raw(type)} end`

// A condition: the new address is that of another mailbox.
const otherMailbox = sql<boolean>`not ('email' = any(given.kept) or lower(given.values[${sql.lit(writable.findIndex(([name]) => name === 'email') + 1)}]) = lower(former.email))`

// Changes the data of a user, and logs a changed address or role. Without `anyRole`, it only matches users with the role `user`.
// The actor's session is read once the row is locked, because an undo that has had the lock may have ended it.
const change = prepare((
  db, id: string, anyRole: boolean, until: string, values: readonly (string | null)[], kept: readonly string[],
  session: string | null, undo: Uint8Array | null, actor: string | null, address: string, agent: string, entries: readonly string[]
) => db
  // The row is locked, so that it is the state that this statement changes, even if a concurrent statement has just changed it.
  .with('former', (cte) => cte.selectFrom('users')
    .select(['id', 'email', 'role', 'email_verified', 'email_changed_at', 'password_hash'])
    .where('id', '=', id).where(sql<boolean>`(${anyRole}::boolean or role = 'user')`).where(isInTime(until)).forNoKeyUpdate())
  .with('given', (cte) => cte.selectNoFrom([
    sql<string[]>`${values}::text[]`.as('values'), sql<string[]>`${kept}::text[]`.as('kept'), sql<string | null>`${session}::uuid`.as('session'),
    sql<Uint8Array>`${undo}::bytea`.as('undo'),
  ]))
  .with('acting', (cte) => cte.selectFrom(['former', 'given']).innerJoin('sessions', 'sessions.id', 'given.session').select('sessions.id')
    .forKeyShare('sessions'))
  .with('updated', (cte) => cte.updateTable('users').from(['former', 'given']).whereRef('users.id', '=', 'former.id')
    .where(({ or, not, exists, selectFrom }) => or([not(otherMailbox), sql<boolean>`given.session is null`, exists(selectFrom('acting').select('id'))]))
    .set({ ...Object.fromEntries(writable.map(([name, type], index) => [name, newValueOf(name, type, index)])), updated_at: sql`now()` })
    .returning(userColumns.map((column) => `users.${column}` as const)))
  .with('undoable', (cte) => cte.insertInto('undo_tokens').columns(undoColumns)
    .expression((query) => query.selectFrom('updated').innerJoin('former', 'former.id', 'updated.id').innerJoin('given', (join) => join.onTrue())
      .select(['given.undo', 'former.id', 'former.email', 'former.email_verified', 'former.email_changed_at', 'former.password_hash', undoExpiry.as('expires')])
      .where(otherMailbox).where('given.undo', 'is not', null).where(hasUndoRoom(query, 'former.id')))
    .returning('email'))
  .with('noted', (cte) => cte.insertInto('audit').columns(auditColumns)
    .expression(({ selectFrom, val }) => selectFrom('updated').innerJoin('former', 'former.id', 'updated.id').innerJoin('given', (join) => join.onTrue())
      .innerJoin(sql<{ entry: string, action: string }>`unnest(
        ${entries}::uuid[], array['user.email-change', 'user.role-change']
      )`.as<'note'>(sql`note(entry, action)`), (join) => join.on(sql<boolean>`
        case note.action when 'user.role-change' then updated.role <> former.role else updated.email <> former.email end`))
      .select([
        'note.entry', 'note.action', val(actor).as('actor'), 'updated.id as user',
        'given.session', val(address).as('address'), val(agent).as('agent'),
      ])))
  .selectFrom('updated').leftJoin('undoable', (join) => join.onTrue()).selectAll('updated').select('undoable.email as undoableBy'))

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
