import { sql, type ExpressionBuilder, type RawBuilder } from 'kysely'
import { invalidMailToken } from '../../schema/mail-links/mail-token.ts'
import { EmailTaken, type Role } from '../../schema/users/users.ts'
import type { UserFields } from '../../schema/users/user-fields.ts'
import { auditColumns } from '../audit/audit.ts'
import { entryColumns, withEntryEvents } from '../audit/events.ts'
import { newId } from '../driver/ids.ts'
import { mailColumns, mailValues, type NewMail } from '../outbox/mails.ts'
import { userData, withEvents } from '../outbox/store.ts'
import { seconds, type ClientInfo } from '../access/sessions.ts'
import type { Database, Tables, UserRow } from '../tables/index.ts'
import { plainColumns, userColumns, type WritableColumn } from '../users/columns.ts'
import { emailKey, hasEmail } from '../users/user-keys.ts'

export interface NewSignUp {
  hash: Uint8Array
  name: string
  email: string
  /** Null if the confirmation has to set the password. */
  passwordHash: string | null
  /** The hash of the secret that only the browser or client has that signs up. */
  bindingHash: Uint8Array
  /** The values of `plainColumns`, by name. */
  fields?: Readonly<Record<string, unknown>> | undefined
  identity?: SignUpIdentity | undefined
}

/** The identity at a provider that does not vouch for the address. */
export interface SignUpIdentity { provider: string, issuer: string, subject: string, email: string }

/** How long a sign-up is pending, in seconds, and how many may be: of all addresses, and of each one. */
export interface PendingLimits { lifetime: number, total: number, ofRecipient: number }

/**
 * Stores a sign-up that expires after a while, and a mail, as one statement. Returns whether it can be confirmed: not
 * if a user has the address (`taken`), too many others are pending, for this address (`repeated`) or in all (`full`),
 * or the mail is not sent (`limited`). Then it is stored as well, but has expired already, and so is a mail. Otherwise
 * the load would differ, and so would the time until the next response, which would reveal which addresses have an
 * account.
 */
export async function insertSignUp (
  db: Database, { hash, name, email, passwordHash, bindingHash, fields, identity }: NewSignUp,
  { lifetime, total, ofRecipient }: PendingLimits, mails: { pending: NewMail, taken: NewMail }
): Promise<'pending' | 'taken' | 'repeated' | 'full' | 'limited'> {
  // Counts no further than necessary.
  const areAtLeast = (
    { selectFrom, fn }: ExpressionBuilder<Tables, never>, count: number, condition: RawBuilder<boolean>
  ) =>
    sql<boolean>`${selectFrom(selectFrom('sign_ups').select('hash')
      .where('expires_at', '>', sql<Date>`now()`).where(condition).limit(count).as('pending'))
      .select(fn.countAll().as('count'))} >= ${count}::integer`
  const { taken, repeated, full, limited } = await db
    .with('state', (cte) => cte.selectNoFrom((eb) => [
      eb.exists(eb.selectFrom('users').select('id').where(hasEmail(email))).$castTo<boolean>().as('taken'),
      areAtLeast(eb, ofRecipient, hasEmail(email)).as('repeated'),
      areAtLeast(eb, total, sql`true`).as('full'),
    ]))
    .with('mailed', (cte) => cte.insertInto('outbox').columns(mailColumns)
      .expression(({ selectFrom }) => selectFrom('state').select(mailValues({
        id: sql`case when taken then ${mails.taken.id} else ${mails.pending.id} end`,
        content: sql`case when taken then ${mails.taken.content} else ${mails.pending.content} end`,
        seconds: sql`case when taken then ${mails.taken.seconds}::integer else ${mails.pending.seconds}::integer end`,
      }, sql`case when taken or not (repeated or "full") then ${email}::text end`, sql`null`)))
      // A sign-up whose token nobody gets must not count.
      .returning(sql<boolean>`data ? 'isLimited'`.as('limited')))
    .with('stored', (cte) => cte.insertInto('sign_ups')
      .columns([
        'hash', 'name', 'email', 'password_hash', 'binding_hash', 'expires_at',
        ...fields ? ['fields' as const] : [], ...identity ? ['identity' as const] : [],
      ])
      .expression(({ selectFrom, val }) => selectFrom(['state', 'mailed']).select([
        val(hash).as('hash'), val(name).as('name'), val(email).as('email'), val(passwordHash).as('password_hash'),
        val(bindingHash).as('binding_hash'),
        sql<Date>`case when taken or repeated or "full" or limited then now() else now() + ${seconds(lifetime)} end`
          .as('expires'),
        ...fields ? [sql<unknown>`${JSON.stringify(fields)}::text::jsonb`.as('fields')] : [],
        ...identity ? [sql<unknown>`${JSON.stringify(identity)}::text::jsonb`.as('identity')] : [],
      ])))
    .selectFrom(['state', 'mailed']).selectAll().executeTakeFirstOrThrow()
  return taken ? 'taken' : repeated ? 'repeated' : full ? 'full' : limited ? 'limited' : 'pending'
}

/** A sign-up that can be confirmed. */
export interface PendingSignUp {
  name: string
  email: string
  hasPassword: boolean
  bindingHash: Uint8Array
  /** The values of `plainColumns`, by name. */
  fields: Record<string, unknown> | null
  identity: SignUpIdentity | null
}

/** Returns a pending sign-up. Throws `InvalidInput` if it does not exist, was confirmed or has expired. */
export async function getSignUp (db: Database, hash: Uint8Array): Promise<PendingSignUp> {
  return db.selectFrom('sign_ups')
    .select(({ eb }) => [
      'name', 'email', eb('password_hash', 'is not', null).$castTo<boolean>().as('hasPassword'),
      'binding_hash as bindingHash', 'fields', 'identity',
    ])
    .where('hash', '=', hash).where('expires_at', '>', sql<Date>`now()`)
    .$narrowType<{ fields: Record<string, unknown> | null, identity: SignUpIdentity | null }>()
    .executeTakeFirstOrThrow(invalidMailToken)
}

// Returns the value of a field that a sign-up has stored, for the columns of new users.
const valueOf = ({ name, sqlType, field }: WritableColumn) =>
  (field?.type === 'json'
    ? sql`used.fields -> ${sql.lit(name)}`
    : sql`(used.fields ->> ${sql.lit(name)})::${sql.raw(sqlType)}`).as(name)

/** The user that a confirmation creates. The address is that of the sign-up. */
export interface ConfirmedSignUp {
  name: string
  role: Role
  /** The values of `plainColumns`, by name. */
  fields?: Readonly<Record<string, unknown>> | undefined
  /** Without it, the password is that of the sign-up, which `bindingHash` must match. */
  passwordHash?: string | undefined
  bindingHash?: Uint8Array | undefined
}

/**
 * Creates the user of a sign-up, with a verified address, and writes an entry to the account log, as one statement.
 * Deletes the sign-up and all others with the same address. Returns the user. Throws `InvalidInput` if the sign-up does
 * not exist, was confirmed, has expired, or belongs to another browser and no password is given, and `EmailTaken` if a
 * user has the address meanwhile.
 * @param fields the host's fields
 */
export async function confirmSignUp (
  db: Database, hash: Uint8Array, { address, userAgent }: ClientInfo, fields: UserFields, confirmed: ConfirmedSignUp
): Promise<UserRow> {
  const { name, role, passwordHash = null, bindingHash = null } = confirmed
  const id = newId(db)
  // Their types are only known at runtime.
  const plain = plainColumns(fields)
  const names = plain.map(({ column }) => column) as 'name'[]
  const statement = db
    // All sign-ups with the address are locked, in a fixed order, so that concurrent confirmations run one after the
    // other. What is read is the state once the locks are held, and so is the time.
    .with('locked', (cte) => cte.selectFrom('sign_ups')
      .select(['hash', 'email', 'binding_hash', 'identity', 'expires_at'])
      .select(sql<string | null>`coalesce(${passwordHash}::text, password_hash)`.as('password_hash'))
      .select(sql<unknown>`${JSON.stringify(confirmed.fields ?? {})}::text::jsonb`.as('fields'))
      .where(emailKey, '=', ({ selectFrom }) =>
        selectFrom('sign_ups').select(emailKey.as('email')).where('hash', '=', hash))
      .orderBy('hash').forUpdate())
    .with('used', (cte) => cte.selectFrom('locked').selectAll()
      .where('hash', '=', hash).where('expires_at', '>', sql<Date>`clock_timestamp()`)
      .where(({ or, eb }) => or([eb('password_hash', 'is not', null), eb('identity', 'is not', null)]))
      .where(sql<boolean>`(${passwordHash}::text is not null or binding_hash = ${bindingHash}::bytea)`))
    .with('deleted', (cte) => cte.deleteFrom('sign_ups').using('locked').whereRef('sign_ups.hash', '=', 'locked.hash')
      .where(({ exists, selectFrom }) => exists(selectFrom('used').select('hash'))))
    .with('created', (cte) => cte.insertInto('users')
      .columns(['id', 'name', 'email', 'password_hash', 'role', 'email_verified', ...names])
      .expression(({ selectFrom, val }) => selectFrom('used')
        .select([
          val(id).as('id'), sql<string>`${name}::text`.as('name'), 'email', 'password_hash',
          sql<Role>`${role}::text`.as('role'), sql.lit(true).as('verified'), ...plain.map(valueOf),
        ]))
      .onConflict((conflict) => conflict.expression(emailKey).doNothing())
      .returning(userColumns(fields)))
    .with('noted', (cte) => cte.insertInto('audit').columns(auditColumns)
      .expression(({ selectFrom, val }) => selectFrom('created').select([
        val(newId(db)).as('entry'), sql.lit('user.sign-up').as('action'), 'id as actor', 'id as user',
        sql<null>`null::uuid`.as('session'), val(address).as('address'), val(userAgent).as('agent'),
      ])).returning(entryColumns))
  const [found] = await withEvents(withEntryEvents(statement, db, ['noted']), db, 'user.created', {
    from: 'created', subject: 'created.id', data: userData('created', 'created.id'),
  })
    .selectFrom('used').leftJoin('created', (join) => join.onTrue()).selectAll('created').execute()
  if (!found) throw invalidMailToken()
  if (found.id === null) throw new EmailTaken()
  return found as UserRow
}
