import { sql } from 'kysely'
import { replanned } from '../driver/replanned.ts'
import type { Database } from '../tables/index.ts'
import { deliveryOwner } from './owner.ts'
import { MAIL } from './mails.ts'

/** Events of one kind and about one user that wait for one consumer, or those of the account log about nobody. */
export interface Backlog { consumer: string, userId: string | null, type: string }

// Of the events about nobody, anybody can cause these.
const isOfLog = sql<boolean>`owners.type in ('audit.created', 'audit.logins-failed')`

// How many events one statement looks at, so that a flood does not make it long.
const MAX_EVENTS_PER_SCAN = 10_000

/**
 * Looks at events that wait and were stored after the position `after`. Returns those of their backlogs in which more
 * than `keep` events wait, the last position, and whether there may be more events after it.
 */
export async function findLargeBacklogs (
  db: Database, { after, keep }: { after: string, keep: number }
): Promise<{ backlogs: Backlog[], last: string, more: boolean }> {
  const rows = await replanned(db)
    .with('recent', (cte) => cte.selectFrom('outbox')
      .select(['position', 'consumer', 'type', deliveryOwner.as('owner')])
      .where('position', '>', after).orderBy('position').limit(MAX_EVENTS_PER_SCAN))
    .with('owners', (cte) => cte.selectFrom('recent').select(['consumer', 'type', 'owner'])
      .select(({ fn }) => [fn.max('position').as('last'), fn.countAll<string>().as('count')])
      .groupBy(['consumer', 'type', 'owner']))
    .selectFrom('owners').select(['consumer', 'type', 'owner as userId', 'last', 'count'])
    .select(({ exists, selectFrom }) => {
      const events = selectFrom('outbox').select('outbox.position')
        .whereRef('outbox.consumer', '=', 'owners.consumer').whereRef('outbox.type', '=', 'owners.type')
        .where('outbox.consumer', '<>', sql.lit(MAIL)).orderBy('outbox.position').offset(keep).limit(1)
      const aboutUser = exists(events.where(deliveryOwner, '=', sql.ref<string>('owners.owner')))
      // Another condition, because an index finds what is null by this one only.
      const aboutNobody = exists(events.where(deliveryOwner, 'is', null))
      return sql<boolean>`case when owner is not null then ${aboutUser} else ${isOfLog} and ${aboutNobody} end`
        .as('isLarge')
    })
    .execute()
  return {
    backlogs: rows.filter(({ isLarge }) => isLarge)
      .map(({ consumer, type, userId }) => ({ consumer, type, userId })),
    last: rows.reduce((last, row) => BigInt(row.last) > BigInt(last) ? row.last : last, after),
    more: rows.reduce((total, { count }) => total + Number(count), 0) === MAX_EVENTS_PER_SCAN,
  }
}

/**
 * Deletes at most `limit` events of a backlog. Of `keep` events that remain, half are the oldest and half are the
 * newest, so that neither the first of them nor the latest state can be pushed out. Returns the number of deleted
 * events.
 */
export async function trimBacklog (
  db: Database, { consumer, userId, type }: Backlog, { keep, limit }: { keep: number, limit: number }
): Promise<number> {
  const events = db.selectFrom('outbox').select('position')
    .where('consumer', '=', consumer).where(deliveryOwner, userId === null ? 'is' : '=', userId).where('type', '=', type)
  const end = (order: 'asc' | 'desc') =>
    sql<string>`(${events.orderBy('position', order).offset(Math.ceil(keep / 2) - 1).limit(1)})`
  const { numDeletedRows } = await replanned(db).deleteFrom('outbox')
    .where(
      'position',
      '=',
      sql<string>`any(array(${events.where('position', '>', end('asc')).where('position', '<', end('desc'))
      .orderBy('position').limit(limit).forUpdate().skipLocked()}))`
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/**
 * Deletes at most `limit` of the oldest events that wait for a consumer, if there are more than `keep`. They would
 * expire first. Returns the number of deleted events.
 */
export async function trimConsumer (
  db: Database, consumer: string, { keep, limit }: { keep: number, limit: number }
): Promise<number> {
  const all = db.selectFrom('outbox').select('position').where('consumer', '=', consumer)
  // The order of an index: counting is much faster than finding the position.
  if (!await all.orderBy('due_at').offset(keep).limit(1).executeTakeFirst()) return 0
  // In a transaction, which has a connection of its own, because the statement may take a second.
  return db.transaction().execute(async (trx) => {
    const { numDeletedRows } = await replanned(trx)
      .with('last', (cte) => cte.selectFrom('outbox').select('position').where('consumer', '=', consumer)
        .orderBy('position', 'desc').offset(keep).limit(1))
      .deleteFrom('outbox')
      .where('position', '=', ({ selectFrom }) => sql<string>`any(array(${selectFrom('outbox').select('position')
        .where('consumer', '=', consumer).where('position', '<=', selectFrom('last').select('position'))
        .orderBy('position').limit(limit).forUpdate().skipLocked()}))`)
      .executeTakeFirstOrThrow()
    return Number(numDeletedRows)
  })
}
