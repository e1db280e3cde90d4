import { sql } from 'kysely'
import { foldEmail } from '../../schema/strings/address.ts'
import type { AuditAction } from '../../schema/audit/audit.ts'
import type { Match } from '../../schema/http/entity-tag.ts'
import { EmailTaken, UserNotFound, type PatchUser, type ReplaceUser, type Role } from '../../schema/users/users.ts'
import type { UserFields } from '../../schema/users/user-fields.ts'
import { actorAuditColumns, type AuditContext } from '../audit/audit.ts'
import { entryColumns, withEntryEvents } from '../audit/events.ts'
import { listApiKeyIds } from '../sign-in/api-keys.ts'
import { newId } from '../driver/ids.ts'
import { isInTime, type Confirmer } from '../driver/write-in-time.ts'
import { deleteSessionsOf } from '../access/ended-sessions.ts'
import { confirmSessions, rejectEnded } from '../access/live-sessions.ts'
import { whileLocked } from './locked-users.ts'
import { requireOtherOwners } from '../organizations/owners.ts'
import { isConsumed } from '../outbox/consumed.ts'
import { mailColumns, mailValues, type NewMail } from '../outbox/mails.ts'
import { storeCredentialEvent, userData, withEvents } from '../outbox/store.ts'
import { isEmailTaken, isUuid, prepare } from '../driver/postgres.ts'
import { hasVersion, versionsOf, whyUnchanged } from './preconditions.ts'
import type { Database, UserRow } from '../tables/index.ts'
import { hasUndoRoom, isRestorable, undoColumns, undoExpiry } from '../mail-links/undo-links.ts'
import { forFields, textOf, userColumns, writableColumns, type WritableColumn } from './columns.ts'
import { isSameEmail } from './user-keys.ts'
import { lockUser } from './users.ts'
import { voidLinks } from '../mail-links/kinds.ts'
import { endedOf, repairAccount } from '../sign-in/repairs.ts'

/** The members of a user to change. At runtime they may include fields of the host. */
export type Changes = { [Name in keyof PatchUser]?: PatchUser[Name] | null }

/**
 * Returns the changes that replace a user: members that are absent become null, but without a role, the role remains.
 * @param fields those of the host that the writer may set
 */
export function replacementOf (user: ReplaceUser, fields?: UserFields): Changes {
  return Object.fromEntries(writableColumns(fields)
    .map(({ name }) => [name, user[name as keyof ReplaceUser] ?? (name === 'role' ? undefined : null)]))
}

// The columns that a change can set. Creating and replacing a user do not set all of them.
const changeableColumns = forFields((fields): readonly WritableColumn[] =>
  [...writableColumns(fields), { name: 'disabled', column: 'disabled', sqlType: 'boolean' }])

/** How a change of a user is made. */
export interface ChangeContext extends AuditContext {
  /** The membership for which the actor's token was issued, which must not have ended; null without one. */
  membershipId: string | null
  /** That of `isInTime`. */
  until: string
  /**
   * The hash of a token that undoes a change of the address; null if it is not the user's own change, or no mails can
   * be sent.
   */
  undo: Uint8Array | null
  /**
   * The mails to a former address: one with that token, if there is one, and one without; null if no mails can be
   * sent.
   */
  mails: { linked: NewMail | null, plain: NewMail } | null
}

/** A user after a change. */
export interface ChangedUser {
  user: UserRow
  /** The ids of the sessions and API keys that it has ended. */
  ended: string[]
}

export interface UpdateOptions {
  /** The fields of the host. */
  fields?: UserFields | undefined
  /** Runs before the change, with the user locked. If it throws, nothing is changed. */
  authorize?: ((user: Pick<UserRow, 'id' | 'role'>) => void) | undefined
  /** Runs in the same transaction, after the change. If it throws, the transaction is rolled back. */
  inTransaction?: ((trx: Database, user: UserRow) => Promise<void>) | undefined
  /** The versions that the user may have. */
  match?: Match
}

/**
 * Changes the data of a user. Members that are undefined remain as they are. The same statement writes to the account
 * log what it changes of the address, the role and whether the user is disabled, and stores the token that undoes a
 * change of the address, the mail about it, and the event. Another role ends the user's sessions, because their tokens
 * contain the former one, and deletes the API keys. Disabling a user and giving one another role than `user` void
 * everything that was issued to the user, and another address by somebody else all links. Throws `UserNotFound`,
 * `EmailTaken`, `LastAdmin` or `PreconditionFailed`, and `InvalidToken` if the actor's session has ended, as it does
 * when an earlier change is undone.
 *
 * @param confirmer who changes the user, and is asked before the commit
 */
export async function updateUser (
  db: Database, id: string, user: Changes, context: ChangeContext, confirmer: Confirmer,
  { fields, authorize, inTransaction, match }: UpdateOptions = {}
): Promise<ChangedUser> {
  if (!isUuid(id)) throw new UserNotFound()
  try {
    // Another role may be less than the former one, such as that of the last admin.
    const from = user.role === undefined || user.role === null || user.role === 'admin' ? null : ['user', user.role]
    if (!user.disabled) {
      // Most updates demote nobody, so the first attempt locks no other row.
      const changed = await updateOnly(from)
      if (changed) return changed
      if (!from) throw await whyUnchanged(db, id, user.email)
    }
    return await whileLocked(db, id, async (trx) => {
      if (authorize) await lock(trx)
      if (user.disabled) await requireOtherOwners(trx, id)
      const keys = await listApiKeyIds(trx, id)
      const updated = await update(trx, null)
      if (!updated) throw await whyUnchanged(trx, id, user.email)
      const changed = await voidFor(trx, updated, keys)
      await inTransaction?.(trx, changed.user)
      await confirmer.confirm()
      return changed
    })
  } catch (error) {
    throw isEmailTaken(db, error) ? new EmailTaken() : error
  }

  // The statement may wait for a lock. It is in a transaction because that has a connection of its own: on a shared
  // one, statements of other requests would wait behind it.
  async function updateOnly (from: readonly string[] | null): Promise<ChangedUser | undefined> {
    return db.transaction().execute(async (trx) => {
      const isPromotion = user.role !== undefined && user.role !== 'user'
      if (isPromotion || authorize) await lock(trx)
      const keys = isPromotion ? await listApiKeyIds(trx, id) : []
      const updated = await update(trx, from)
      if (!updated) return undefined
      const changed = await voidFor(trx, updated, keys)
      await inTransaction?.(trx, changed.user)
      await confirmer.confirm()
      return changed
    })
  }

  async function lock (trx: Database): Promise<void> {
    const locked = await lockUser(trx, id)
    if (locked) authorize?.(locked)
  }

  // Voids what a change makes void. A trigger has deleted the API keys if the user has another role or is disabled.
  // Returns the user, and what has ended.
  async function voidFor (
    trx: Database, { former_email: email, former_role: role, ...changed }: UpdatedUser, keysBefore: readonly string[]
  ): Promise<ChangedUser> {
    const { actorId } = context
    const hasOtherRole = changed.role !== role
    const keys = user.disabled || hasOtherRole ? keysBefore : []
    const removed = { userId: changed.id, kind: 'api-key', actorId } as const
    for (let count = 0; count < keys.length; count++) await storeCredentialEvent(trx, 'credential.removed', removed)
    if (user.disabled || (hasOtherRole && changed.role !== 'user')) {
      const repair = user.disabled ? 'disabling' : 'promotion'
      return { user: changed, ended: [...keys, ...endedOf(await repairAccount(trx, changed.id, repair, { actorId }))] }
    }
    if (actorId !== changed.id && foldEmail(changed.email) !== foldEmail(email)) {
      await voidLinks(trx, changed.id)
    }
    return { user: changed, ended: [...keys, ...hasOtherRole ? await deleteSessionsOf(trx, changed.id, actorId) : []] }
  }

  async function update (db: Database, from: readonly string[] | null): Promise<UpdatedUser | undefined> {
    const { actorId, sessionId, keyId, membershipId, address, userAgent, until, undo, mails } = context
    const changeable = changeableColumns(fields)
    const values = changeable.map((column) => textOf(column, user[column.name as keyof Changes]))
    const kept = changeable.map(({ name }) => name).filter((name) => user[name as keyof Changes] === undefined)
    const entries = notable.map(() => newId(db))
    const change = changes(fields)({
      mails: mails !== null,
      updated: isConsumed(db, 'user.updated'),
      noted: isConsumed(db, 'audit.created'),
    })
    const [row] = await rejectEnded(() => change(db, {
      id,
      from,
      versions: versionsOf(match),
      until,
      values,
      kept,
      session: sessionId,
      key: keyId,
      membership: membershipId,
      undo,
      actor: actorId,
      linked: mails?.linked?.id ?? null,
      linkedContent: mails?.linked?.content ?? null,
      plain: mails?.plain.id ?? null,
      plainContent: mails?.plain.content ?? null,
      seconds: mails?.plain.seconds ?? null,
      address,
      agent: userAgent,
      entries,
    }))
    return row
  }
}

/**
 * A user after a change, with what changes of it void. The names have underscores, which names of fields cannot have.
 */
type UpdatedUser = UserRow & { former_email: string, former_role: Role }

// Returns the value that `change` gives a column.
const newValueOf = ({ name, column, sqlType }: WritableColumn, index: number) =>
  sql`case when ${sql.lit(name)} = any(given.kept) then ${sql.ref(`users.${column}`)} else given.values[${sql.lit(index + 1)}]::${sql.raw(sqlType)} end`

// The changes that the account log records, each with the condition under which it took place.
const notable: [action: AuditAction, condition: string][] = [
  ['user.email-change', 'updated.email <> former.email'],
  ['user.role-change', 'updated.role <> former.role'],
  ['user.disable', 'updated.disabled > former.disabled'],
  ['user.enable', 'updated.disabled < former.disabled'],
]

// A condition: the new address is that of another mailbox.
const newEmail = sql`given.values[${sql.lit(writableColumns().findIndex(({ name }) => name === 'email') + 1)}]`
const otherMailbox = sql<boolean>`not ('email' = any(given.kept) or ${isSameEmail(newEmail, sql`former.email`)})`

interface ChangeParameters {
  id: string
  /** The roles that the user may have; null for any. */
  from: readonly string[] | null
  versions: readonly string[] | null
  /** That of `isInTime`. */
  until: string
  /** The values of `changeableColumns`, and the names of those that remain as they are. */
  values: readonly (string | null)[]
  kept: readonly string[]
  /** Who changes it, and from where. */
  actor: string | null
  session: string | null
  key: string | null
  membership: string | null
  address: string
  agent: string
  /** The ids of the entries of the account log, for each that `notable` may have. */
  entries: readonly string[]
  /** See `ChangeContext`. */
  undo: Uint8Array | null
  linked: string | null
  linkedContent: string | null
  plain: string | null
  plainContent: string | null
  seconds: number | null
}

/** What a statement stores besides the change: the mail to a former address, and events. */
interface Stored { mails: boolean, updated: boolean, noted: boolean }

// Changes the data of a user, and logs what is notable. It matches users of the roles `from` only.
// The actor's session is read at the end and not locked: it may have ended while the statement waited, and its end must
// not wait for the statement.
const prepareChange = (fields: UserFields, stores: Stored) => prepare((db, {
  id, from: roles, versions, until, values, kept, session, key, membership, undo, actor, linked, linkedContent, plain,
  plainContent, seconds, address, agent, entries,
}: ChangeParameters) => {
  const statement = db
    // The row is locked, so that it is the state that this statement changes, even if a concurrent statement has just
    // changed it.
    .with('former', (cte) => cte.selectFrom('users')
      .select(['id', 'email', 'role', 'disabled', 'email_verified', 'email_changed_at', 'password_hash'])
      .where('id', '=', id).where(sql<boolean>`(${roles}::text[] is null or role = any(${roles}::text[]))`)
      .where(hasVersion(sql.ref('row_version'), sql`${versions}`)).where(isInTime(until)).forNoKeyUpdate())
    .with('given', (cte) => cte.selectNoFrom([
      sql<string[]>`${values}::text[]`.as('values'), sql<string[]>`${kept}::text[]`.as('kept'),
      sql<string | null>`${session}::uuid`.as('session'), sql<string | null>`${key}::uuid`.as('key'),
      sql<string | null>`${membership}::uuid`.as('membership'),
      sql<Uint8Array>`${undo}::bytea`.as('undo'),
      sql<string | null>`${actor}::uuid`.as('actor'), sql<string | null>`${linked}::uuid`.as('linked'),
      sql<string | null>`${linkedContent}::text`.as('linked_content'), sql<string | null>`${plain}::uuid`.as('plain'),
      sql<string | null>`${plainContent}::text`.as('plain_content'),
      sql<number | null>`${seconds}::integer`.as('seconds'),
    ]))
    .with('updated', (cte) => cte.updateTable('users').from(['former', 'given']).whereRef('users.id', '=', 'former.id')
      .set({
        ...Object.fromEntries(
          changeableColumns(fields).map((set, index) => [set.column, newValueOf(set, index)])
        ),
        updated_at: sql`now()`,
      })
      .returning(userColumns(fields)))
    .with('undoable', (cte) => cte.insertInto('undo_links').columns(undoColumns)
      .expression((query) => query.selectFrom('updated').innerJoin('former', 'former.id', 'updated.id')
        .innerJoin('given', (join) => join.onTrue())
        .select([
          'given.undo', 'former.id', 'former.email', 'former.email_verified', 'former.email_changed_at',
          'former.password_hash', undoExpiry.as('expires'),
        ])
        .where(otherMailbox).where('given.undo', 'is not', null).where(hasUndoRoom(query, 'former.id'))
        .where(query.not(isRestorable(query, 'former.id', sql`updated.email`))))
      .returning('hash'))
    .with('noted', (cte) => cte.insertInto('audit').columns(actorAuditColumns)
      .expression(({ selectFrom, val }) => selectFrom('updated').innerJoin('former', 'former.id', 'updated.id')
        .innerJoin('given', (join) => join.onTrue())
        .innerJoin(sql<{ entry: string, action: string }>`unnest(
          ${entries}::uuid[], array[${sql.join(notable.map(([action]) => sql.lit(action)))}]
        )`.as<'note'>(sql`note(entry, action)`), (join) => join.on(sql<boolean>`
          case note.action ${sql.raw(notable.map(([action, condition]) => `when '${action}' then ${condition}`).join(' '))} end`))
        .select([
          'note.entry', 'note.action', 'given.actor', 'updated.id as user',
          'given.session', val(address).as('address'), val(agent).as('agent'), 'given.key',
        ])).returning(entryColumns))
  const mailed = stores.mails ? withMail(statement) : statement
  const noted = stores.noted ? withEntryEvents(mailed, db, ['noted']) : mailed
  const from = 'updated cross join given'
  const stored = stores.updated
    ? withEvents(noted, db, 'user.updated', { from, subject: 'updated.id', data: userData('updated', 'given.actor') })
    : noted
  return stored.selectFrom('updated').innerJoin('former', 'former.id', 'updated.id').selectAll('updated')
    .select(['former.email as former_email', 'former.role as former_role'])
    .where(confirmSessions(db, from, 'unnest(array[coalesce(given.session, given.key), given.membership])'))
})

// Stores the mail to a former address, with the link if its token was stored.
function withMail<Query extends object> (statement: Query): Query {
  const rows = sql`(select former.email, former.id as user_id, seconds,
    case when is_linked then linked else plain end as mail, case when is_linked then linked_content else plain_content end as content
    from updated inner join former on former.id = updated.id cross join given
    cross join (select exists (select from undoable) as is_linked) as link where ${otherMailbox})`.as<'mail'>(sql`mail`)
  return (statement as Database).with('mailed', (cte) => cte.insertInto('outbox').columns(mailColumns)
    .expression(({ selectFrom }) => selectFrom(rows).select(mailValues(
      { id: sql`mail.mail`, content: sql`mail.content`, seconds: sql`mail.seconds` }, sql`mail.email`, sql`mail.user_id`
    )))) as unknown as Query
}

// Whether a statement stores events and mails rarely changes between two calls, so each kind is built once.
const changes = forFields((fields) => {
  const built = new Map<string, ReturnType<typeof prepareChange>>()
  return (stores: Stored) => {
    const kind = `${stores.mails} ${stores.updated} ${stores.noted}`
    const known = built.get(kind) ?? prepareChange(fields, stores)
    built.set(kind, known)
    return known
  }
})
