import { sql } from 'kysely'
import { anyOf } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import { deliveryOwner } from '../outbox/owner.ts'
import { withEvents } from '../outbox/store.ts'
import type { Database } from '../tables/index.ts'

/** The columns of an entry that its event has. */
export const entryColumns = [
  'id', 'action', 'actor_id', 'user_id', 'session_id', 'key_id', 'organization_id', 'address', 'user_agent',
] as const

/**
 * Adds to a statement that it stores the events of the entries that it writes to the account log (contract 23.4).
 * Failed logins are counted instead (`db/audit/failed-logins.ts`).
 *
 * @param noted the common table expressions with the entries. They have `entryColumns`
 */
export function withEntryEvents<Query extends object> (query: Query, db: Database, noted: readonly string[]): Query {
  const columns = entryColumns.join(', ')
  const entries = noted.map((name) => `select ${columns} from ${name}`).join(' union all ')
  return withEvents(query, db, 'audit.created', {
    from: `(${entries}) as entry where entry.action <> 'login.failed'`,
    subject: 'entry.id',
    data: {
      entryId: 'entry.id',
      action: 'entry.action',
      actorId: 'entry.actor_id',
      userId: 'entry.user_id',
      sessionId: 'entry.session_id',
      keyId: 'entry.key_id',
      organizationId: 'entry.organization_id',
      address: 'entry.address',
      userAgent: 'entry.user_agent',
    },
  })
}

/**
 * Blanks the addresses and user agents in at most `limit` events that wait, and in those that were given up, whose
 * entries are blanked when their users are deleted. Returns their number.
 */
export async function blankEntryEvents (trx: Database, userIds: readonly string[], limit: number): Promise<number> {
  const type = 'audit.created'
  const blank = { address: '', userAgent: '' }
  const blanked = { data: sql`data || ${JSON.stringify(blank)}::text::jsonb` }
  const owner = sql<string>`any(${userIds}::text[])`
  const isToBlank = sql<boolean>`not data @> ${JSON.stringify(blank)}::text::jsonb and (
    data ->> 'actorId' = data ->> 'userId' or (data ->> 'actorId' is null and data ->> 'action' <> 'user.delete'))`
  // There are at most some thousand.
  await trx.updateTable('failed_deliveries').set(blanked).where('type', '=', type).where(deliveryOwner, '=', owner)
    .where(isToBlank).execute()
  const { numUpdatedRows } = await replanned(trx).updateTable('outbox').set(blanked)
    .where('position', '=', ({ selectFrom }) => anyOf(selectFrom('outbox').select('position')
      .where('consumer', '=', anyOf(selectFrom('event_consumers').select('name').where('type', '=', type)))
      .where(deliveryOwner, '=', owner).where('type', '=', type).where(isToBlank)
      .orderBy('position').limit(limit).forUpdate())).executeTakeFirstOrThrow()
  return Number(numUpdatedRows)
}
