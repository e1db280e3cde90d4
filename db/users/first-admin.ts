import { sql } from 'kysely'
import { PROGRAM } from '../../schema/runtime/program.ts'
import { noFields, type UserFields } from '../../schema/users/user-fields.ts'
import { insertAuditEntries, type AuditContext } from '../audit/audit.ts'
import { newId } from '../driver/ids.ts'
import { restartLoginLimits } from '../throttle/login-limits.ts'
import { storeUserEvent } from '../outbox/store.ts'
import { allowPauses, lock } from '../driver/postgres.ts'
import { StartError } from '../driver/start-errors.ts'
import type { Database, UserRow } from '../tables/index.ts'
import { userColumns } from './columns.ts'
import { emailKey, hasEmail, keyOfEmail } from './user-keys.ts'
import { repairAccount, type Repaired } from '../sign-in/repairs.ts'

/** The first admin, and what else happens in the transaction. */
export interface FirstAdmin {
  name?: string
  email: string
  passwordHash: string
  /** The fields of the host, which `inTransaction` gets with their defaults. */
  fields?: UserFields
  /** Runs in the transaction, if there is a new user, or an existing one whose account was repaired. */
  inTransaction?: ((trx: Database, user: UserRow, repaired: Repaired | undefined) => Promise<void>) | undefined
}

/** The first admin that was created. */
export interface CreatedAdmin {
  /** What has ended, if it is an existing user. */
  repaired: Repaired | undefined
}

// No user and no client has caused it.
const context: AuditContext = { actorId: null, sessionId: null, keyId: null, address: '', userAgent: 'usher first admin' }

/**
 * Creates the first admin if there is no admin. If many nodes start at the same time, only one creates it. An
 * existing user with that address becomes an admin, gets the password, and is not disabled any more. Everything is
 * void that was issued to that user before, because only the password makes somebody the admin. Returns undefined if
 * there is an admin. Throws a `StartError` if the user has never had the role `admin` and the address is not verified:
 * everybody can set their own address to one that is not theirs. So it does if the user is a service.
 */
export async function insertFirstAdmin (
  db: Database, { name = 'Admin', email, passwordHash, fields = noFields, inTransaction }: FirstAdmin
): Promise<CreatedAdmin | undefined> {
  return db.transaction().execute(async (trx) => {
    // While a node starts, its event loop may be busy with other plugins.
    await allowPauses(trx)
    await lock(trx, 'first-admin')
    if (await hasAdmin(trx)) return undefined
    const id = newId(trx)
    const existing = await trx.selectFrom('users').select(['role', 'account_kind as kind', 'email_verified as emailVerified'])
      .where(hasEmail(email)).forNoKeyUpdate().executeTakeFirst()
    if (existing?.kind === 'service') throw service(email)
    if (existing && existing.role !== 'admin' && !existing.emailVerified) throw unverified(email)
    const user = await trx.insertInto('users')
      .values({ id, name, email, role: 'admin', password_hash: passwordHash })
      .onConflict((conflict) => conflict.expression(emailKey)
        .doUpdateSet({ role: 'admin', password_hash: passwordHash, disabled: false }))
      .returning(userColumns(fields)).executeTakeFirstOrThrow()
    const isNew = user.id === id
    // The user was created at this moment.
    if (!isNew && !existing) throw unverified(email)
    const repaired = isNew ? undefined : await repairAccount(trx, user.id, 'first-admin', { actorId: null })
    await storeUserEvent(trx, isNew ? 'user.created' : 'user.updated', user.id, null)
    if (!isNew) await storeUserEvent(trx, 'password.changed', user.id, null)
    const actions = isNew ? ['user.create'] as const : ['user.role-change', 'password.change'] as const
    await insertAuditEntries(trx, actions.map((action) => ({ ...context, action, userId: user.id })))
    await inTransaction?.(trx, user, repaired)
    if (!isNew) await restartLoginLimits(trx, { userId: user.id, email })
    return { repaired }
  })
}

const service = (email: string) => new StartError(`there is no admin, and the address of the first one, ${email}, is that of a service user, ` +
  'who cannot log in. Choose another address for the first admin (ADMIN_EMAIL, or the option admin), and start again')

const unverified = (email: string) => new StartError(`there is no admin, and the address of the first one, ${email}, is that of a user who has ` +
  `not verified it, so it may be somebody else who claims it. If the user is the right one, run "${PROGRAM} users promote ${email}", and ` +
  `"${PROGRAM} users reset-password ${email}" for a new password. If not, run "${PROGRAM} users delete ${email}", or choose another address ` +
  'for the first admin (ADMIN_EMAIL, or the option admin). Then start again')

/**
 * Whether there is an admin who is not disabled, and whether the user with the address that was asked for is an admin.
 */
export interface AdminState { exists: boolean, isAdmin: boolean }

/** Returns whether there is an admin, and whether the user with this address is one. It takes one round trip. */
export async function readAdmin (db: Database, email: string | undefined): Promise<AdminState> {
  // Statements with parameters take two, because their types are asked for first.
  const admins = () => db.selectFrom('users').select(sql.lit(1).as('found')).where('role', '=', sql.lit('admin'))
  const { rows: [found] } = await sql<AdminState>`
    select exists (${admins().where('disabled', '=', sql.lit(false))}) as "exists",
      exists (${admins().where(emailKey, '=', keyOfEmail(sql.lit(email ?? '')))}) as "isAdmin"`.execute(db)
  return found!
}

/** Returns whether there is at least one admin who is not disabled. */
export async function hasAdmin (db: Database): Promise<boolean> {
  return await db.selectFrom('users').select('id').where('role', '=', 'admin')
    .where('disabled', '=', false).limit(1).executeTakeFirst() !== undefined
}
