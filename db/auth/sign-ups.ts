import { sql } from 'kysely'
import { invalidMailToken } from '../../schema/auth/mail-token.ts'
import { EmailTaken, type Role } from '../../schema/users/user.ts'
import { noFields, type UserField } from '../../schema/users/user-fields.ts'
import { deleteExpired } from '../batching/delete-expired.ts'
import { auditColumns } from '../audit/audit.ts'
import { newId } from '../driver/ids.ts'
import { mailColumns, mailValues, type NewMail } from '../outbox/mails.ts'
import { userData, withEvents } from '../outbox/store.ts'
import { seconds, type ClientInfo } from '../sessions/sessions.ts'
import type { Database, UserRow } from '../tables/index.ts'
import { userColumns } from '../users/columns.ts'
import { emailKey, hasEmail } from '../users/user-keys.ts'

export interface NewSignUp {
  hash: Uint8Array
  name: string
  email: string
  passwordHash: string
  /** The values of the host's fields, by name. */
  fields?: Readonly<Record<string, unknown>> | undefined
}

/**
 * Stores a sign-up that expires after `seconds`, and a mail, as one statement. Returns whether it can be confirmed: not if a user has the
 * address, and not if `maxPending` others are pending. In both cases it is stored as well, but has expired already, and so is a mail. Otherwise the load
 * would differ, and so would the time until the next response, which would reveal which addresses have an account.
 */
export async function insertSignUp (
  db: Database, { hash, name, email, passwordHash, fields }: NewSignUp, { lifetime, maxPending }: { lifetime: number, maxPending: number },
  mails: { pending: NewMail, taken: NewMail }
): Promise<'pending' | 'taken' | 'full'> {
  const { taken, full } = await db
    .with('state', (cte) => cte.selectNoFrom(({ exists, selectFrom }) => [
      exists(selectFrom('users').select('id').where(hasEmail(email))).$castTo<boolean>().as('taken'),
      sql<boolean>`${selectFrom(selectFrom('sign_ups').select('hash').where('expires_at', '>', sql<Date>`now()`).limit(maxPending).as('pending'))
        .select(({ fn }) => fn.countAll().as('count'))} >= ${maxPending}::integer`.as('full'),
    ]))
    .with('stored', (cte) => cte.insertInto('sign_ups').columns(['hash', 'name', 'email', 'password_hash', 'expires_at', ...fields ? ['fields' as const] : []])
      .expression(({ selectFrom, val }) => selectFrom('state').select([
        val(hash).as('hash'), val(name).as('name'), val(email).as('email'), val(passwordHash).as('password_hash'),
        sql<Date>`case when taken or "full" then now() else now() + ${seconds(lifetime)} end`.as('expires'),
        ...fields ? [sql<unknown>`${JSON.stringify(fields)}::text::jsonb`.as('fields')] : [],
      ])))
    .with('mailed', (cte) => cte.insertInto('outbox').columns(mailColumns)
      .expression(({ selectFrom }) => selectFrom('state').select(mailValues({
        id: sql`case when taken then ${mails.taken.id} else ${mails.pending.id} end`,
        content: sql`case when taken then ${mails.taken.content} else ${mails.pending.content} end`,
        seconds: sql`case when taken then ${mails.taken.seconds}::integer else ${mails.pending.seconds}::integer end`,
      }, sql`case when taken or not "full" then ${email}::text end`, sql`null`))))
    .selectFrom('state').selectAll().executeTakeFirstOrThrow()
  return taken ? 'taken' : full ? 'full' : 'pending'
}

/** Throws `InvalidInput` if a sign-up does not exist, was confirmed or has expired. */
export async function checkSignUp (db: Database, hash: Uint8Array): Promise<void> {
  await db.selectFrom('sign_ups').select('hash').where('hash', '=', hash).where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirstOrThrow(invalidMailToken)
}

/**
 * Returns the name, the address and the fields of a sign-up. Throws `InvalidInput` if it does not exist, was confirmed or has expired.
 */
export async function getSignUp (db: Database, hash: Uint8Array): Promise<{ name: string, email: string, fields: Record<string, unknown> | null }> {
  return db.selectFrom('sign_ups').select(['name', 'email', 'fields']).where('hash', '=', hash).where('expires_at', '>', sql<Date>`now()`)
    .$narrowType<{ fields: Record<string, unknown> | null }>().executeTakeFirstOrThrow(invalidMailToken)
}

// Returns the value of a field that a sign-up has stored, for the columns of new users.
const fieldOf = ({ name, type, column }: UserField) =>
  (type === 'json' ? sql`used.fields -> ${sql.lit(name)}` : sql`(used.fields ->> ${sql.lit(name)})::${sql.raw(column)}`).as(name)

/** What a hook of the host wants of the user of a sign-up. */
export interface WantedUser {
  name?: string | undefined
  role?: Role | undefined
  /** The values of the host's fields, by name. */
  fields?: Readonly<Record<string, unknown>> | undefined
}

/**
 * Creates the user of a sign-up, with a verified address, and writes an entry to the account log, as one statement. Deletes the
 * sign-up and all others with the same address. Returns the user. Throws `InvalidInput` if the sign-up does not exist, was
 * confirmed or has expired, and `EmailTaken` if a user has the address meanwhile.
 * @param fields the host's fields. Those that the owner of a record may not write remain empty, unless `wanted` has them
 * @param wanted replaces the name and the fields of the sign-up, and the role `user`
 */
export async function confirmSignUp (
  db: Database, hash: Uint8Array, { address, userAgent }: ClientInfo, fields = noFields, wanted: WantedUser = {}
): Promise<UserRow> {
  const { name = null, role = 'user' } = wanted
  const id = newId(db)
  const given = wanted.fields ? fields : fields.filter(({ write }) => write === 'owner')
  // Their types are only known at runtime.
  const names = given.map(({ name }) => name) as 'name'[]
  const statement = db
    // All sign-ups with the address are locked, in a fixed order, so that concurrent confirmations run one after the other. What
    // is read is the state once the locks are held, and so is the time.
    .with('locked', (cte) => cte.selectFrom('sign_ups')
      .select(['hash', 'name', 'email', 'password_hash', 'expires_at'])
      .$if(given.length > 0, (query) => query.select(sql<unknown>`coalesce(${JSON.stringify(wanted.fields) ?? null}::text::jsonb, fields)`.as('fields')))
      .where(emailKey, '=', ({ selectFrom }) =>
        selectFrom('sign_ups').select(emailKey.as('email')).where('hash', '=', hash))
      .orderBy('hash').forUpdate())
    .with('used', (cte) => cte.selectFrom('locked').selectAll()
      .where('hash', '=', hash).where('expires_at', '>', sql<Date>`clock_timestamp()`))
    .with('deleted', (cte) => cte.deleteFrom('sign_ups').using('locked').whereRef('sign_ups.hash', '=', 'locked.hash')
      .where(({ exists, selectFrom }) => exists(selectFrom('used').select('hash'))))
    .with('created', (cte) => cte.insertInto('users').columns(['id', 'name', 'email', 'password_hash', 'role', 'email_verified', ...names])
      .expression(({ selectFrom, val }) => selectFrom('used')
        .select([
          val(id).as('id'), sql<string>`coalesce(${name}::text, name)`.as('name'), 'email', 'password_hash', sql<Role>`${role}::text`.as('role'),
          sql.lit(true).as('verified'), ...given.map(fieldOf),
        ]))
      .onConflict((conflict) => conflict.expression(emailKey).doNothing())
      .returning(userColumns(fields)))
    .with('noted', (cte) => cte.insertInto('audit').columns(auditColumns)
      .expression(({ selectFrom, val }) => selectFrom('created').select([
        val(newId(db)).as('entry'), sql.lit('user.sign-up').as('action'), 'id as actor', 'id as user', sql<null>`null::uuid`.as('session'),
        val(address).as('address'), val(userAgent).as('agent'),
      ])))
  const [found] = await withEvents(statement, db, 'user.created', {
    from: 'created', subject: 'created.id', data: userData('created', 'created.id'),
  })
    .selectFrom('used').leftJoin('created', (join) => join.onTrue()).selectAll('created').execute()
  if (!found) throw invalidMailToken()
  if (found.id === null) throw new EmailTaken()
  return found as UserRow
}

/** Deletes at most `limit` expired sign-ups. Returns the number of deleted rows. */
export const deleteExpiredSignUps = (db: Database, limit: number): Promise<number> =>
  deleteExpired(db, 'sign_ups', { column: 'expires_at', limit })
