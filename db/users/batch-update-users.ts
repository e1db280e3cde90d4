import { sql } from 'kysely'
import postgres from 'postgres'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import { permits, type Match } from '../../schema/http/entity-tag.ts'
import { PreconditionFailed } from '../../schema/http/errors.ts'
import { UserNotFound } from '../../schema/users/users.ts'
import { noFields, type UserFields } from '../../schema/users/user-fields.ts'
import { isInTime, isTooLate } from '../driver/write-in-time.ts'
import { findEndedSessions, hasLiveMembership, hasLiveSession, type TokenIds } from '../access/live-sessions.ts'
import { isConsumed } from '../outbox/consumed.ts'
import { userData, withEvents } from '../outbox/store.ts'
import { inOrder, isUuid, prepare } from '../driver/postgres.ts'
import { hasVersion, versionsOf } from './preconditions.ts'
import type { Database, UserRow, UsersTable } from '../tables/index.ts'
import type { Changes } from './update-user.ts'
import {
  forFields, textOf, userColumns, writableColumns, type OwnWritableColumn, type WritableColumn,
} from './columns.ts'
import { findUsers } from './users.ts'

/** A change of a user that may share a statement with changes of other users. */
export interface UserUpdate {
  /** In lower case. */
  id: string
  changes: Changes
  actorId: string | null
  /** What the token of the actor ends with, which must not have ended; null if there is none. */
  writer: TokenIds | null
  /** The versions that the user may have. */
  match: Match
}

/** The result of a change that `updateUsers` has not made: `updateUser` makes it, or finds why it is impossible. */
export const separate = Symbol('separate')

/**
 * Returns whether a change can share a statement. One that names the address or the role, but not the name, most likely
 * changes them, and such a change needs a transaction of its own.
 */
export const isShareable = ({ name, email, role, disabled }: Changes): boolean =>
  disabled === undefined && (name !== undefined || (email === undefined && role === undefined))

/**
 * Changes the data of users, each at most once, and stores their events, as one statement. Returns the result of each
 * change, in the order of `updates`: the user, `UserNotFound`, `PreconditionFailed`, or `separate`. That is the result
 * of changes that would fail or wait, and then the others would as well: changes of the address, which is unique, or of
 * the role, which may end sessions, and changes of a user whom another transaction has locked. Addresses and roles that
 * are as they were are no changes.
 * @param until that of `isInTime`
 */
export async function updateUsers (
  db: Database, updates: readonly UserUpdate[], until: string, fields = noFields
): Promise<(UserRow | Error | typeof separate)[]> {
  const columns = writableColumns(fields)
  const known = updates.filter(({ id }) => isUuid(id))
  const values =
    columns.map((column) => known.map(({ changes }) => textOf(column, changes[column.name as keyof Changes])))
  const kept = known.map(({ changes }) =>
    columns.map(({ name }) => changes[name as keyof Changes] === undefined ? '1' : '0').join(''))
  const versions = known.map(({ match }) => toArray(versionsOf(match)))
  const change = (isConsumed(db, 'user.updated') ? changeAndStore : changeOnly)(fields)
  const rows = await change(db, {
    ...values,
    ids: known.map(({ id }) => id),
    kept,
    versions,
    actors: known.map(({ actorId }) => actorId),
    sessions: known.map(({ writer }) => writer?.id ?? null),
    memberships: known.map(({ writer }) => writer?.membershipId ?? null),
    until,
  }).catch((error) => {
    // A value that a constraint of the host forbids, for example. Each change then has its own result.
    if (error instanceof postgres.PostgresError && !isTooLate(error)) return undefined
    throw error
  })
  if (!rows) return updates.map(() => separate)
  const changed = inOrder(updates.map(({ id }) => id), rows)
  return rows.length === updates.length ? changed as UserRow[] : explain(db, updates, changed, fields)
}

// The elements are numbers, so none of them needs quotes.
const toArray = (versions: readonly string[] | null): string | null => versions && `{${versions.join()}}`

// Adds the results of the changes that the statement has not made. If they cannot be found, the others have taken
// effect nevertheless.
async function explain (
  db: Database, updates: readonly UserUpdate[], changed: readonly (UserRow | undefined)[], fields: UserFields
): Promise<(UserRow | Error | typeof separate)[]> {
  const others = updates.filter((_, index) => !changed[index])
  const found = await Promise.all([
    findUsers(db, others.map(({ id }) => id), fields),
    findEndedSessions(db, others.flatMap(({ writer }) => [writer?.id, writer?.membershipId])),
  ]).catch((error: Error) => error)
  const results = others.map((update, index) => {
    if (found instanceof Error) return found
    const [users, ended] = found
    const { writer } = update
    const hasEnded = ended.has(writer?.id) || ended.has(writer?.membershipId)
    return hasEnded ? new InvalidToken() : resultOf(update, users[index])
  })
  return changed.map((user) => user ?? results.shift()!)
}

function resultOf ({ changes, match }: UserUpdate, user: UserRow | undefined): Error | typeof separate {
  if (!user) return new UserNotFound()
  const isUnshared = (['email', 'role'] as const)
    .some((name) => changes[name] !== undefined && changes[name] !== user[name])
  return isUnshared || permits(match, user.rowVersion) ? separate : new PreconditionFailed()
}

// The columns whose changes have no further effects.
const isPlain = ({ name }: WritableColumn) => name !== 'email' && name !== 'role'

// The names have underscores, which names of fields cannot have. A column that is kept is null in `given`.
type Given = Pick<UsersTable, OwnWritableColumn | 'id'> &
  Record<'kept_columns' | 'expected_versions' | 'actor_id' | 'session_id' | 'membership_id', string>

// Each array has an element for each user.
interface ChangeParameters {
  ids: readonly string[]
  /** A digit for each of `writableColumns`: `1` if it remains as it is. */
  kept: readonly string[]
  versions: readonly (string | null)[]
  actors: readonly (string | null)[]
  sessions: readonly (string | null)[]
  memberships: readonly (string | null)[]
  until: string
  /** The values of each of `writableColumns`, by its index. */
  [column: number]: readonly (string | null)[]
}

const prepareChange = (fields: UserFields, stores: boolean) => prepare((db, given: ChangeParameters) => {
  const { ids, kept, versions, actors, sessions, memberships, until } = given
  const columns = writableColumns(fields)
  const arrays = columns.map(({ sqlType }, index) => sql`${given[index]}::${sql.raw(sqlType)}[]`)
  const newValueOf = (set: WritableColumn) =>
    sql`case when substr(given.kept_columns, ${sql.lit(columns.indexOf(set) + 1)}, 1) = '1'
    then ${sql.ref(`users.${set.column}`)} else ${sql.ref(`given.${set.column}`)} end`
  const statement = db
    .with('given', (cte) => cte.selectFrom(sql<Given>`unnest(
      ${ids}::uuid[], ${kept}::text[], ${versions}::text[], ${actors}::uuid[], ${sessions}::uuid[], ${memberships}::uuid[],
      ${sql.join(arrays)}
    )`.as<'given'>(
        sql`given(id, kept_columns, expected_versions, actor_id, session_id, membership_id, ${sql.join(columns.map(({ column }) => sql.ref(column)))})`
      )).selectAll())
    // A user who is locked is skipped, because all others would wait as well, and two statements could wait for each
    // other.
    .with('locked', (cte) => cte.selectFrom('users').select('users.id as locked_id')
      .where('users.id', '=', sql<string>`any(array(select given.id from given))`)
      .where(isInTime(until)).orderBy('users.id')
      .forNoKeyUpdate().skipLocked())
    .with('updated', (cte) => cte.updateTable('users').from(['given', 'locked'])
      .whereRef('users.id', '=', 'given.id').whereRef('users.id', '=', 'locked.locked_id')
      .where(hasVersion(sql.ref('users.row_version'), sql.ref('given.expected_versions')))
      .where(hasLiveSession('session_id')).where(hasLiveMembership('membership_id'))
      .where(sql<boolean>`coalesce(users.email = given.email, true) and coalesce(users.role = given.role, true)`)
      .set({
        ...Object.fromEntries(columns.filter(isPlain).map((set) => [set.column, newValueOf(set)])),
        updated_at: sql`now()`,
      })
      .returning(userColumns(fields)))
  const from = 'updated inner join given on given.id = updated.id'
  const stored = stores
    ? withEvents(
      statement, db, 'user.updated', { from, subject: 'updated.id', data: userData('updated', 'given.actor_id') }
    )
    : statement
  return stored.selectFrom('updated').selectAll()
})

const [changeOnly, changeAndStore] = [
  forFields((fields) => prepareChange(fields, false)), forFields((fields) => prepareChange(fields, true)),
]
