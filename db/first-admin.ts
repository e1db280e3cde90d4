import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { allowPauses, lock } from './postgres.ts'
import type { Database } from './tables.ts'

/**
 * Makes the first admin, where there is none; of many nodes that start at once, one does. An existing user of
 * that address becomes the admin. Whether one was made.
 */
export async function insertFirstAdmin (db: Database, admin: { email: string, passwordHash: string }): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    // A node that starts may be busy with its other plugins.
    await allowPauses(trx)
    await lock(trx, 'first-admin')
    if (await hasAdmin(trx)) return false
    await trx.insertInto('users')
      .values({ id: uuid(), name: 'Admin', email: admin.email, role: 'admin', password_hash: admin.passwordHash })
      .onConflict((conflict) => conflict.expression(sql`lower(email)`).doUpdateSet({ role: 'admin', password_hash: admin.passwordHash }))
      .execute()
    return true
  })
}

export async function hasAdmin (db: Database): Promise<boolean> {
  return await db.selectFrom('users').select('id').where('role', '=', 'admin').limit(1).executeTakeFirst() !== undefined
}
