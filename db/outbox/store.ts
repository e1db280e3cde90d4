import { sql, type QueryCreator, type RawBuilder } from 'kysely'
import type { EventData, EventName } from '../../schema/outbox/events.ts'
import type { CredentialKind } from '../../schema/sign-in/ways.ts'
import { eventMembers } from '../../schema/users/members.ts'
import { noFields } from '../../schema/users/user-fields.ts'
import type { Database, Tables } from '../tables/index.ts'
import { userColumns } from '../users/columns.ts'
import { isConsumed } from './consumed.ts'

/** Where a statement finds the events to store: the rows of its change. All members are SQL. */
export interface Happened {
  /** The common table expressions with a row for each event, such as `created`. */
  from: string
  subject: string
  /** The members of the event's data. */
  data: Readonly<Record<string, string | RawBuilder<unknown>>>
}

const columns = ['consumer', 'type', 'subject', 'data'] as const

/**
 * Adds to a statement that it stores an event for each row that it has changed, once for each consumer. The statement
 * holds the locks of these rows, so the positions of a subject's events are in the order of its changes. If the events
 * have no consumer, it returns the statement as it is.
 *
 * @param query a statement with the common table expressions that `happened` names
 */
export function withEvents<Query extends object> (
  query: Query, db: Database, name: EventName, { from, subject, data }: Happened
): Query {
  if (!isConsumed(db, name)) return query
  const members = Object.entries(data)
    .flatMap(([member, value]) => [sql.lit(member), typeof value === 'string' ? sql.raw(value) : value])
  const happened = sql<{ subject: string, data: unknown }>`(
    select ${sql.raw(subject)} as subject, jsonb_build_object(${sql.join(members)}) as data from ${sql.raw(from)}
  )`.as<'happened'>(sql.raw('happened'))
  return (query as QueryCreator<Tables>).with(`stored_${name.replace('.', '_')}`, (cte) => cte.insertInto('outbox')
    .columns(columns)
    .expression(({ selectFrom }) => selectFrom('event_consumers').innerJoin(happened, (join) => join.onTrue())
      .where('event_consumers.type', '=', sql.lit(name))
      .select([
        'event_consumers.name', 'event_consumers.type', 'happened.subject', 'happened.data',
      ]))) as unknown as Query
}

/** The data of an event about a user, from a row with the columns of `userColumns`. */
export function userData (row: string, actor: string | RawBuilder<unknown>): Happened['data'] {
  const ofUser = Object.fromEntries(eventMembers.map((name) => [name, `${row}."${name}"`]))
  return { userId: `${row}.id`, ...ofUser, actorId: actor }
}

/**
 * Stores an event with this data, in the transaction that has made the change, and holds the lock of its subject. Does
 * nothing if the event has no consumer.
 */
export async function storeEvent<Name extends EventName> (
  trx: Database, name: Name, subject: string, data: EventData<Name>
): Promise<void> {
  if (!isConsumed(trx, name)) return
  await trx.insertInto('outbox').columns(columns)
    .expression(({ selectFrom }) => selectFrom('event_consumers').where('event_consumers.type', '=', name).select([
      'event_consumers.name', 'event_consumers.type', sql<string>`${subject}::uuid`.as('subject'),
      sql<unknown>`${JSON.stringify(data)}::text::jsonb`.as('data'),
    ])).execute()
}

/** Returns the id of an actor as an expression. */
export const actorValue = (id: string | null): RawBuilder<unknown> => sql`${id}::uuid`

/**
 * Where a statement finds the event of each session that it ends, in rows with the `id` and the `user_id` of the
 * session.
 */
export function sessionEndOf (actor: string | RawBuilder<unknown>) {
  return { subject: 'ended.user_id', data: { userId: 'ended.user_id', sessionId: 'ended.id', actorId: actor } }
}

/**
 * Stores an event about a user in the transaction that has changed the user, and holds the lock. Does nothing if the
 * event has no consumer.
 */
export async function storeUserEvent (
  trx: Database, name: 'user.created' | 'user.updated' | 'user.deleted' | 'password.changed', userId: string,
  actorId: string | null
): Promise<void> {
  if (!isConsumed(trx, name)) return
  const hasRow = name === 'user.created' || name === 'user.updated'
  const actor = actorValue(actorId)
  const data = hasRow ? userData('changed', actor) : { userId: 'changed.id', actorId: actor }
  const query = trx.with('changed', (cte) => hasRow
    ? cte.selectFrom('users').select(userColumns(noFields)).where('id', '=', userId)
    : cte.selectNoFrom(sql<string>`${userId}::uuid`.as('id')) as never)
  await withEvents(query, trx, name, {
    from: 'changed', subject: 'changed.id', data,
  }).selectFrom('changed').select('changed.id').execute()
}

/**
 * Stores an event about a way to sign in, in the transaction that has changed it. Does nothing if the event has no
 * consumer.
 */
export async function storeCredentialEvent (
  trx: Database, name: 'credential.added' | 'credential.removed',
  { userId, kind, actorId }: { userId: string, kind: CredentialKind, actorId: string | null }
): Promise<void> {
  if (!isConsumed(trx, name)) return
  const query = trx.with('changed', (cte) => cte.selectNoFrom(sql<string>`${userId}::uuid`.as('id')))
  const data = { userId: 'changed.id', kind: sql.lit(kind), actorId: actorValue(actorId) }
  await withEvents(query, trx, name, { from: 'changed', subject: 'changed.id', data }).selectFrom('changed')
    .select('changed.id').execute()
}
