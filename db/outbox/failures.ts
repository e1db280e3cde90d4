import { sql } from 'kysely'
import type { FailedDelivery } from '../../schema/outbox/events.ts'
import { anyOf, isUuid } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import type { Database } from '../tables/index.ts'
import { deleteDeliveries, type Attempt } from './deliveries.ts'
import { isMail, MAIL } from './mails.ts'

const failureColumns = ['id', 'consumer', 'type', 'subject', 'data', 'created_at', 'attempts', 'error'] as const

/** Lists a delivery among the failed ones, and makes the next one of its subject due. */
export async function failDelivery (db: Database, { position, lease }: Attempt, error: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await trx.insertInto('failed_deliveries').columns(failureColumns)
      .expression(({ selectFrom, val }) => selectFrom('outbox').where('position', '=', position)
        .where('lease', '=', lease)
        .select(['id', 'consumer', 'type', 'subject', 'data', 'created_at', 'attempts', val(error).as('error')]))
      .onConflict((conflict) => conflict.column('id').doNothing()).execute()
    await deleteDeliveries(trx, [{ position, lease }])
  })
}

/** Returns failed deliveries of events, oldest first, after the one with the id `after`. */
export async function listFailedDeliveries (
  db: Database, { limit, after }: { limit: number, after?: string | undefined }
): Promise<FailedDelivery[]> {
  if (after !== undefined && !isUuid(after)) return []
  const rows = await db.selectFrom('failed_deliveries')
    .select([
      'id', 'consumer', 'type', 'subject', 'data', 'created_at as timestamp', 'attempts', 'error',
      'failed_at as failedAt',
    ])
    .$if(after !== undefined, (query) => query.where(sql<boolean>`(failed_at, id) > (
      select failed_at, id from ${sql.table('failed_deliveries')} as last where last.id = ${after})`))
    .where('type', '<>', MAIL).orderBy('failed_at').orderBy('id').limit(limit).execute()
  return rows as FailedDelivery[]
}

/**
 * Puts a failed delivery into the outbox again, after the others of its subject. Returns whether there was one with
 * that id.
 */
export async function retryFailedDelivery (db: Database, id: string): Promise<boolean> {
  if (!isUuid(id)) return false
  const rows = await db
    .with('failed', (cte) => cte.deleteFrom('failed_deliveries').where('id', '=', id)
      .returning(['id', 'consumer', 'type', 'subject', 'data', 'created_at']))
    .insertInto('outbox').columns(['id', 'consumer', 'type', 'subject', 'data', 'created_at'])
    .expression(({ selectFrom }) =>
      selectFrom('failed').select(['id', 'consumer', 'type', 'subject', 'data', 'created_at']))
    .returning('id').execute()
  return rows.length > 0
}

/**
 * Deletes at most `limit` failed deliveries of events, or of mails, that are older than `days`, or beyond the newest
 * `keep`. Each has a limit of its own: anybody can cause a mail that cannot be delivered. Returns their number.
 */
export async function deleteOldFailures (
  db: Database, { of, days, keep, limit }: { of: 'events' | 'mails', days: number, keep: number, limit: number }
): Promise<number> {
  const isOfKind = sql<boolean>`${isMail} = ${sql.lit(of === 'mails')}`
  const { numDeletedRows } = await replanned(db)
    .with('beyond', (cte) => cte.selectFrom('failed_deliveries').select('failed_at').where(isOfKind)
      .orderBy('failed_at', 'desc').offset(keep).limit(1))
    .deleteFrom('failed_deliveries')
    .where('id', '=', ({ selectFrom }) => anyOf(selectFrom('failed_deliveries').select('id')
      .where(isOfKind).where(({ or, eb }) => or([
        eb('failed_at', '<', sql<Date>`now() - make_interval(days => ${days})`),
        eb('failed_at', '<=', sql<Date>`(select failed_at from beyond)`),
      ])).orderBy('failed_at').limit(limit).forUpdate().skipLocked()))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/**
 * Gives up at most `limit` deliveries that expired more than an hour ago, although no node attempts them any more, for
 * example because their consumer is gone. Events are listed as failed; mails are deleted. Events that were never
 * attempted get four more days, because all nodes may have been stopped. Returns the number of each.
 */
export async function giveUpExpired (db: Database, limit: number): Promise<{ events: number, mails: number }> {
  const rows = await replanned(db)
    .with('expired', (cte) => cte.deleteFrom('outbox')
      .where('position', '=', ({ selectFrom }) => anyOf(selectFrom('outbox').select('position')
        .where('expires_at', '<=', sql<Date>`now() - interval '1 hour'`)
        .where('due_at', '<=', sql<Date>`now() - interval '1 hour'`)
        .where(({ or, eb }) => or([
          eb('type', '=', MAIL), eb('attempts', '>', 0), eb('expires_at', '<=', sql<Date>`now() - interval '4 days'`),
        ]))
        .orderBy('expires_at').limit(limit).forUpdate().skipLocked()))
      .returning(['id', 'consumer', 'type', 'subject', 'data', 'created_at', 'attempts']))
    .with('failed', (cte) => cte.insertInto('failed_deliveries').columns(failureColumns)
      .expression(({ selectFrom, val }) => selectFrom('expired').where('type', '<>', MAIL)
        .select([
          'id', 'consumer', 'type', 'subject', 'data', 'created_at', 'attempts',
          val('No node has attempted it in time').as('error'),
        ]))
      .onConflict((conflict) => conflict.column('id').doNothing()))
    .selectFrom('expired').select('type').execute()
  const mails = rows.filter(({ type }) => type === MAIL).length
  return { events: rows.length - mails, mails }
}
