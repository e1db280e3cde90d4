import { sql } from 'kysely'
import { hasTotp } from '../sign-in/second-factor.ts'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { EmailTaken, type ReplaceUser, type UserKind } from '../../schema/users/users.ts'
import { noFields, type UserFields } from '../../schema/users/user-fields.ts'
import { actorAuditColumns, type AuditContext } from '../audit/audit.ts'
import { entryColumns, withEntryEvents } from '../audit/events.ts'
import { newId } from '../driver/ids.ts'
import { storeUserEvent, userData, withEvents } from '../outbox/store.ts'
import { isAdmitted, isolateConflicts, keyedOf, KeyTaken, withIdempotencyKeys } from '../idempotency/idempotency.ts'
import { confirmSessions, findEndedSessions, hasLiveSession, isolateEnded } from '../access/live-sessions.ts'
import type { WriterToken } from '../access/live-tokens.ts'
import { arrayOf, inOrder, isUuid, prepare } from '../driver/postgres.ts'
import type { Row } from '../tables/row.ts'
import { selectWritten } from '../idempotency/select-written.ts'
import type { Database, UserRow, UsersTable } from '../tables/index.ts'
import { forFields, textOf, userColumns, writableColumns, type OwnWritableColumn } from './columns.ts'
import { emailKey, hasEmail, isSameEmail } from './user-keys.ts'

const selectUsers = forFields((fields) => prepare((db, { ids }: { ids: string }) =>
  db.selectFrom('users').select(userColumns(fields)).where('id', '=', sql<string>`any(${ids}::uuid[])`)))

/** Returns the users with these ids, in the same order. An id that is unknown or malformed yields `undefined`. */
export async function findUsers (
  db: Database, ids: readonly string[], fields?: UserFields
): Promise<(UserRow | undefined)[]> {
  return inOrder(ids, await selectUsers(fields)(db, { ids: arrayOf(ids.filter(isUuid)) }))
}

const selectVersions = prepare((db, { ids }: { ids: string }) =>
  db.selectFrom('users').select(['id', 'row_version as rowVersion']).where('id', '=', sql<string>`any(${ids}::uuid[])`))

export type UserVersion = Pick<UserRow, 'id' | 'rowVersion'>

/** Returns the versions of the users with these ids, like `findUsers`. */
export async function findUserVersions (db: Database, ids: readonly string[]): Promise<(UserVersion | undefined)[]> {
  return inOrder(ids, await selectVersions(db, { ids: arrayOf(ids.filter(isUuid)) }))
}

/**
 * Returns the users with these e-mail addresses, regardless of case, in the same order. An unknown address yields
 * `undefined`.
 */
export async function findUsersByEmail (
  db: Database, emails: readonly string[], fields = noFields
): Promise<(UserRow | undefined)[]> {
  const rows = await db
    // The names have underscores, which names of fields cannot have.
    .selectFrom(sql<{ given_email: string, given_place: number }>`unnest(
      ${emails}::text[], ${emails.map((_, place) => place)}::int[]
    )`.as<'asked'>(sql`asked(given_email, given_place)`))
    .innerJoin('users', (join) => join.on(isSameEmail(sql`users.email`, sql`asked.given_email`)))
    .select(userColumns(fields)).select('asked.given_place')
    .execute()
  const found: (UserRow | undefined)[] = emails.map(() => undefined)
  for (const { given_place: place, ...user } of rows) found[place] = user
  return found
}

export type Credentials = UserRow & Row<UsersTable, 'password_hash'> & {
  /** Whether the user has a second factor. The name has underscores, which names of fields cannot have. */
  has_second_factor: boolean
}

/** Returns the user with this e-mail address, regardless of case, and the password hash to check a login against. */
export async function findCredentials (
  db: Database, email: string, fields = noFields
): Promise<Credentials | undefined> {
  return db.selectFrom('users').select([...userColumns(fields), 'password_hash as passwordHash'])
    .select((query) => hasTotp(query, 'users.id').as('has_second_factor'))
    .where(hasEmail(email))
    .executeTakeFirst()
}

/**
 * Locks a user until the transaction ends, so that changes of the same user run one after the other. Every transaction
 * that changes an account takes this lock first. Returns undefined if there is no such user.
 */
export async function lockUser (
  trx: Database, id: string
): Promise<Row<UsersTable, 'id' | 'email' | 'email_verified' | 'role' | 'disabled'> & { kind: UserKind } | undefined> {
  return trx.selectFrom('users')
    .select(['id', 'email', 'email_verified as emailVerified', 'role', 'disabled', 'account_kind as kind'])
    .where('id', '=', id).forNoKeyUpdate().executeTakeFirst()
}

/** Marks the address of a user as verified, in the transaction that has created the user, and stores the event. */
export async function verifyAddress (trx: Database, id: string): Promise<void> {
  await trx.updateTable('users').set({ email_verified: true }).where('id', '=', id).execute()
  await storeUserEvent(trx, 'user.updated', id, id)
}

/**
 * Replaces the hash of a password by a better one of the same password, unless it is no longer `from`. Returns whether
 * it was replaced.
 */
export async function updatePasswordHash (db: Database, id: string, from: string, to: string): Promise<boolean> {
  const { numUpdatedRows } = await db.updateTable('users').set({ password_hash: to })
    .where('id', '=', id).where('password_hash', '=', from).where(isRehash).executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

// Is always true. For this statement, it says that the password stays the same (`void_upload_links` in
// `db/migrations/0001.ts`).
const isRehash = sql<boolean>`(select set_config('usher.rehash', 'on', true)) is not null`

export interface NewUser extends ReplaceUser {
  passwordHash?: string | null | undefined
  kind?: UserKind | undefined
}

/** A user to be created, and who does it, with what token. With `once`, the result is stored under that key. */
export type UserCreation = NewUser & { context: AuditContext, token?: WriterToken | null, once?: ResultKey | undefined }

const defaultOf = (name: string) => name === 'role' ? 'user' : null

/**
 * Creates users, their entries in the account log and their events, as one statement. Returns the users in the order of
 * `users`. A user whose address is taken yields `EmailTaken`, one whose key is taken yields `KeyTaken`, one whose
 * session has ended yields `InvalidToken`, and none of them affects the others.
 * @param idOf returns the id of a new user. It is no member of `users`, which may have members that a client has chosen
 */
export async function insertUsers (
  db: Database, users: readonly UserCreation[], fields = noFields, idOf = (_: UserCreation) => newId(db)
): Promise<(UserRow | Error)[]> {
  return isolateConflicts(db, users, (users) => isolateEnded(db, users, (users) =>
    insertAll(db, users, fields, idOf)))
}

async function insertAll (
  db: Database, users: readonly UserCreation[], fields: UserFields, idOf: (user: UserCreation) => string
): Promise<(UserRow | Error)[]> {
  const ids = users.map(idOf)
  const keyed = keyedOf(ids, users.map(({ once }) => once))
  const columns = writableColumns(fields)
  // Their types are only known at runtime.
  const names = columns.map(({ column }) => column) as OwnWritableColumn[]
  const context = <Name extends keyof AuditContext> (name: Name) => users.map((user) => user.context[name])
  const writers = users.map(({ token }) => token?.id ?? null)
  const values = columns.map((column) =>
    sql`${users.map((user) => textOf(column, user[column.name as 'name']) ?? defaultOf(column.name))}::${sql.raw(column.sqlType)}[]`)
  // The names have underscores, which names of fields cannot have.
  type Given = Pick<UsersTable, OwnWritableColumn | 'id' | 'password_hash'> &
    Record<'user_kind', UserKind> &
    Record<'entry_id' | 'actor_id' | 'session_id' | 'key_id' | 'writer_id' | 'client_address' | 'user_agent', string>
  const statement = (keyed ? withIdempotencyKeys(db, keyed) : db)
    .with('given', (cte) => cte.selectFrom(sql<Given>`unnest(
      ${ids}::uuid[], ${users.map(({ passwordHash = null }) => passwordHash)}::text[], ${users.map(() => newId(db))}::uuid[],
      ${users.map(({ kind = 'person' }) => kind)}::text[],
      ${context('actorId')}::uuid[], ${context('sessionId')}::uuid[], ${context('keyId')}::uuid[], ${writers}::uuid[],
      ${context('address')}::text[], ${context('userAgent')}::text[],
      ${sql.join(values)}
    )`.as<'given'>(
        sql`given(id, password_hash, entry_id, user_kind, actor_id, session_id, key_id, writer_id, client_address, user_agent, ${sql.join(names.map(sql.ref))})`
      )).selectAll())
    .with('created', (cte) => cte.insertInto('users')
      .columns(['id', 'password_hash', 'account_kind', ...names])
      .expression(({ selectFrom }) => selectFrom('given').select(['id', 'password_hash', 'user_kind', ...names])
        .where(hasLiveSession('writer_id'))
        .$if(keyed !== undefined, (query) => query.where(isAdmitted('given.id'))))
      .onConflict((conflict) => conflict.expression(emailKey).doNothing())
      .returning(userColumns(fields)))
    .with('noted', (cte) => cte.insertInto('audit')
      .columns(actorAuditColumns)
      .expression(({ selectFrom }) => selectFrom('given').innerJoin('created', 'created.id', 'given.id').select([
        'given.entry_id', sql.lit('user.create').as('action'), 'given.actor_id', 'given.id', 'given.session_id',
        'given.client_address', 'given.user_agent', 'given.key_id',
      ])).returning(entryColumns))
  const from = 'created inner join given on given.id = created.id'
  const created = withEvents(withEntryEvents(statement, db, ['noted']), db, 'user.created', {
    from, subject: 'created.id', data: userData('created', 'given.actor_id'),
  })
  const condition = confirmSessions(db, from, 'given.writer_id', users.map(({ token }) => token))
  const { written, refused } = await selectWritten<UserRow>(
    db, created, { from: 'created', kind: 'user', keyed, condition }
  )
  const rows = inOrder(ids, written)
  if (written.length === users.length) return rows as UserRow[]
  const ended = await findEndedSessions(db, writers)
  return rows.map((row, index) => {
    if (row) return row
    if (ended.has(writers[index])) return new InvalidToken()
    return refused.has(ids[index]!) ? new KeyTaken() : new EmailTaken()
  })
}
