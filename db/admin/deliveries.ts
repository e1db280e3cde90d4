import { sql } from 'kysely'
import { isUuid } from '../driver/postgres.ts'
import { isMail } from '../outbox/mails.ts'
import type { Database } from '../tables/index.ts'
import { countUpTo } from './counts.ts'

/** What could not be delivered. */
export const deliveryKinds = ['event', 'mail'] as const
export type DeliveryKind = typeof deliveryKinds[number]

/** A delivery that was given up, without the content of a mail, which has links that may work. */
export interface FailedDeliveryRow {
  id: string
  kind: DeliveryKind
  consumer: string
  type: string
  subject: string
  /** The user that it concerns; null if there is none. */
  userId: string | null
  /** The recipient of a mail; null for an event. */
  recipient: string | null
  attempts: number
  error: string
  createdAt: Date
  failedAt: Date
}

/** A page of them; `next` is the place of the last one if another page follows. */
export interface FailedDeliveryPage { rows: FailedDeliveryRow[], next: string | null }

/** The format of a place: microseconds since 1970, and an id. */
export const PLACE = '^[0-9]{1,18}\\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'

const placeOf = sql<string>`(extract(epoch from failed_at) * 1000000)::bigint::text || '.' || id`

/** Returns a page of failed deliveries, newest first, by keyset. */
export async function listFailed (
  db: Database, { kind, limit, after }: { kind?: DeliveryKind | undefined, limit: number, after?: string | undefined }
): Promise<FailedDeliveryPage> {
  const [time, id] = after?.split('.') ?? []
  const rows = await db.selectFrom('failed_deliveries')
    .select([
      'id', sql<DeliveryKind>`case when ${isMail} then 'mail' else 'event' end`.as('kind'), 'consumer', 'type', 'subject',
      sql<string | null>`coalesce(data ->> 'userId', data ->> 'authorId')`.as('userId'),
      sql<string | null>`case when ${isMail} then data ->> 'to' end`.as('recipient'),
      'attempts', 'error', 'created_at as createdAt', 'failed_at as failedAt', placeOf.as('place'),
    ])
    .$if(kind !== undefined, (query) => query.where(isMail, '=', kind === 'mail'))
    .$if(after !== undefined, (query) => query.where(sql<boolean>`(failed_at, id) < (
      timestamptz 'epoch' + ${time}::bigint * interval '1 microsecond', ${id}::uuid)`))
    .orderBy('failed_at', 'desc').orderBy('id', 'desc').limit(limit + 1).execute()
  const next = rows.length > limit ? rows[limit - 1]!.place : null
  return { rows: rows.slice(0, limit).map(({ place: _, ...row }) => row), next }
}

/** Deletes a failed delivery. Returns whether there was one with that id. */
export async function deleteFailed (db: Database, id: string): Promise<boolean> {
  if (!isUuid(id)) return false
  const { numDeletedRows } = await db.deleteFrom('failed_deliveries').where('id', '=', id).executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}

// Up to this many rows are counted.
const MAX_COUNTED = 10_000

/** Returns how many deliveries wait, have failed before, and were given up, each up to 10,000. */
export async function countDeliveries (
  db: Database
): Promise<{ waiting: number, retrying: number, failed: number }> {
  return db.selectNoFrom([
    countUpTo(db, 'outbox', MAX_COUNTED).as('waiting'),
    countUpTo(db, 'outbox', MAX_COUNTED, sql`attempts > 0`).as('retrying'),
    countUpTo(db, 'failed_deliveries', MAX_COUNTED).as('failed'),
  ]).executeTakeFirstOrThrow()
}
