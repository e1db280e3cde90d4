import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
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
    await trx.insertInto('users')
      .values({ id: uuid(), name: 'Admin', email: admin.email, role: 'admin', password_hash: admin.passwordHash })
      .onConflict((conflict) => conflict.expression(sql`lower(email)`).doUpdateSet({ role: 'admin', password_hash: admin.passwordHash, disabled: false }))
      .execute()
    return true
  })
}

/** Returns whether there is at least one admin who is not disabled. */
export async function hasAdmin (db: Database): Promise<boolean> {
  return await db.selectFrom('users').select('id').where('role', '=', 'admin').where('disabled', '=', false).limit(1).executeTakeFirst() !== undefined
}
