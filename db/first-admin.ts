import { sql } from 'kysely'
import { noFields, type UserFields } from '../schema/user-fields.ts'
import { insertAuditEntries, type AuditContext } from './audit.ts'
import { newId } from './driver/ids.ts'
import { storeUserEvent } from './outbox/store.ts'
import { allowPauses, lock } from './postgres.ts'
import type { Database, UserRow } from './tables.ts'
import { userColumns } from './user-columns.ts'

/** The first admin, and what else happens in the transaction. */
export interface FirstAdmin {
  name?: string
  email: string
  passwordHash: string
  /** The fields of the host, which `also` gets with their defaults. */
  fields?: UserFields
  /** Runs in the transaction, if an existing user becomes the admin or if there is a new one. */
  also?: ((trx: Database, user: UserRow, isNew: boolean) => Promise<void>) | undefined
}

// No user and no client has caused it.
const context: AuditContext = { actorId: null, sessionId: null, address: '', userAgent: 'usher first admin' }

/**
 * Creates the first admin if there is no admin. If many nodes start at the same time, only one creates it. An existing user with
 * that address becomes an admin, gets the password, and is not disabled any more. Returns whether it created one.
 */
export async function insertFirstAdmin (db: Database, { name = 'Admin', email, passwordHash, fields = noFields, also }: FirstAdmin): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    // While a node starts, its event loop may be busy with other plugins.
    await allowPauses(trx)
    await lock(trx, 'first-admin')
    if (await hasAdmin(trx)) return false
    const id = newId(trx)
    const user = await trx.insertInto('users')
      .values({ id, name, email, role: 'admin', password_hash: passwordHash })
      .onConflict((conflict) => conflict.expression(sql`lower(email)`).doUpdateSet({ role: 'admin', password_hash: passwordHash, disabled: false }))
      .returning(userColumns(fields)).executeTakeFirstOrThrow()
    const isNew = user.id === id
    await storeUserEvent(trx, isNew ? 'user.created' : 'user.updated', user.id, null)
    if (!isNew) await storeUserEvent(trx, 'password.changed', user.id, null)
    const actions = isNew ? ['user.create'] as const : ['user.role-change', 'password.change'] as const
    await insertAuditEntries(trx, actions.map((action) => ({ ...context, action, userId: user.id })))
    await also?.(trx, user, isNew)
    return true
  })
}

/** Returns whether there is at least one admin who is not disabled. */
export async function hasAdmin (db: Database): Promise<boolean> {
  return await db.selectFrom('users').select('id').where('role', '=', 'admin').where('disabled', '=', false).limit(1).executeTakeFirst() !== undefined
}
