import { sql } from 'kysely'
import { LastAdmin, UserNotFound } from '../../schema/users/users.ts'
import { isUuid } from '../driver/postgres.ts'
import type { Database } from '../tables/index.ts'

/**
 * Runs a change that takes a user's permissions away in a transaction that has locked the user. Throws `UserNotFound`,
 * and `LastAdmin` if no admin would remain.
 */
export async function whileLocked<Result extends object> (
  db: Database, id: string, change: (trx: Database) => Promise<Result>
): Promise<Result> {
  // Most users are not admins, and then no other row needs a lock. The second attempt is a separate transaction: it has
  // to lock the admins in order, so it must not already hold the lock of one of them.
  return await attempt(lockMember) ?? (await attempt(lockWithAdmins))!

  async function attempt (lockUser: (trx: Database, id: string) => Promise<boolean>): Promise<Result | undefined> {
    return db.transaction().execute(async (trx) => await lockUser(trx, id) ? change(trx) : undefined)
  }
}

/** Locks a user who is not an admin until the transaction ends. Returns false if there is no such user. */
async function lockMember (trx: Database, id: string): Promise<boolean> {
  const user = await trx.selectFrom('users').select('id').where('id', '=', id)
    .where('role', '!=', 'admin').forNoKeyUpdate().executeTakeFirst()
  return user !== undefined
}

/**
 * Locks a user who is about to be deleted, demoted or disabled, and all admins, until the transaction ends. The order
 * is always the same, so that two admins cannot remove each other at the same time. Throws `UserNotFound`, and
 * `LastAdmin` if the user is the only admin who is not disabled.
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

/**
 * Locks the author of a post that the transaction will create, so that the author is not deleted before the commit.
 * Returns the time that the post will have. Throws `UserNotFound`.
 */
export async function lockAuthor (trx: Database, authorId: string): Promise<Date> {
  if (!isUuid(authorId)) throw new UserNotFound()
  const { now } = await trx.selectFrom('users').select(sql<Date>`now()`.as('now'))
    .where('id', '=', authorId).forKeyShare()
    .executeTakeFirstOrThrow(() => new UserNotFound())
  return now
}
