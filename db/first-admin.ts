import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { storeUserEvent } from './outbox/store.ts'
import { allowPauses, lock } from './postgres.ts'
import type { Database } from './tables.ts'

/**
 * Creates the first admin if there is no admin. If many nodes start at the same time, only one creates it. An existing user with
 * that address becomes an admin, gets the password, and is not disabled any more. Returns whether it created one.
 */
export async function insertFirstAdmin (db: Database, admin: { email: string, passwordHash: string }): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    // While a node starts, its event loop may be busy with other plugins.
    await allowPauses(trx)
    await lock(trx, 'first-admin')
    if (await hasAdmin(trx)) return false
    const { id, created } = await trx.insertInto('users')
      .values({ id: uuid(), name: 'Admin', email: admin.email, role: 'admin', password_hash: admin.passwordHash })
      .onConflict((conflict) => conflict.expression(sql`lower(email)`).doUpdateSet({ role: 'admin', password_hash: admin.passwordHash, disabled: false }))
      .returning(['id', sql<boolean>`users.xmax = 0`.as('created')]).executeTakeFirstOrThrow()
    await storeUserEvent(trx, created ? 'user.created' : 'user.updated', id, null)
    if (!created) await storeUserEvent(trx, 'password.changed', id, null)
    return true
  })
}

/** Returns whether there is at least one admin who is not disabled. */
export async function hasAdmin (db: Database): Promise<boolean> {
  return await db.selectFrom('users').select('id').where('role', '=', 'admin').where('disabled', '=', false).limit(1).executeTakeFirst() !== undefined
}
