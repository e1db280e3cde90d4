import { sql } from 'kysely'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { limitOf, type Network } from '../../schema/http/network.ts'
import { QuotaExceeded, UploadNotFound } from '../../schema/uploads/upload.ts'
import {
  TooManyUnfinishedUploads, UploadOffsetConflict, UploadTakenOver,
} from '../../schema/uploads/resumable-upload.ts'
import { newId } from '../driver/ids.ts'
import { allowPauses, isUuid, lock, schemaOf, violates } from '../driver/postgres.ts'
import { insertResult } from '../idempotency/idempotency.ts'
import { confirmSession, confirmSessions, idsOf, isLiveSession, rejectEnded, requireLiveSession } from '../access/live-sessions.ts'
import type { WriterToken } from '../access/live-tokens.ts'
import type { ResumableUploadsTable, UploadPart } from '../tables/uploads.ts'
import type { Row } from '../tables/row.ts'
import type { Database } from '../tables/index.ts'
import { limitsUploads, type UploadQuota } from './usage.ts'

/** An upload that is resumed. Numbers of bytes are numbers. */
export interface ResumableUploadRow extends Omit<Row<
  ResumableUploadsTable, 'id' | 'user_id' | 'metadata' | 'length' | 'received' | 'upload_id' | 'created_at' | 'expires_at'
>, 'length' | 'received'> {
  length: number
  received: number
}

/** An upload that a request continues. */
export interface ContinuedUpload extends ResumableUploadRow {
  /** What is stored of it, in order. */
  parts: UploadPart[]
  /** The request. */
  writer: string
}

const columns = [
  'id', 'user_id as userId', 'metadata', 'length', 'received', 'upload_id as uploadId', 'created_at as createdAt',
  'expires_at as expiresAt',
] as const

const withNumbers = <Found extends { length: string, received: string }>(row: Found) =>
  ({ ...row, length: Number(row.length), received: Number(row.received) })

/** How many unfinished uploads there may be. */
export interface UnfinishedLimits { perUser: number, perNetwork: number, total: number }

export interface NewResumableUpload {
  userId: string
  /** Those of the client. */
  networks: readonly Network[]
  metadata: string
  length: number
  /** For how long it may be unfinished. */
  seconds: number
}

/**
 * Creates an upload without bytes, which counts toward the quota of its user at once. Throws `InvalidToken` if the user
 * was deleted or the session has ended, `QuotaExceeded`, `TooManyUnfinishedUploads`, and `KeyTaken` if the key `once`
 * is taken.
 */
export async function insertResumableUpload (
  db: Database, { userId, networks, metadata, length, seconds }: NewResumableUpload, token: WriterToken,
  { quota, limits, once }: { quota: UploadQuota, limits: UnfinishedLimits, once?: ResultKey | undefined }
): Promise<ResumableUploadRow> {
  try {
    return await rejectEnded(() => db.transaction().execute(async (trx) => {
      // One after the other, so that they can be counted.
      await lock(trx, `resumable uploads of ${schemaOf(db)}`)
      await requireOwner(trx, userId)
      const { ofUser, ofNetworks, total } = await trx.selectFrom('resumable_uploads').select(({ fn }) => [
        fn.countAll<string>().filterWhere('user_id', '=', userId).as('ofUser'),
        sql<number[]>`json_build_array(${sql.join(networks.map(({ name }) =>
          sql`count(*) filter (where ${name}::text = any(networks))`))})`.as('ofNetworks'),
        fn.countAll<string>().as('total'),
      ]).where('upload_id', 'is', null).executeTakeFirstOrThrow()
      const isFull = Number(ofUser) >= limits.perUser || Number(total) >= limits.total ||
        networks.some((network, index) => ofNetworks[index]! >= limitOf(network, limits.perNetwork, limits.total))
      if (isFull) throw new TooManyUnfinishedUploads()
      const created = await trx.with('created', (cte) => cte.insertInto('resumable_uploads')
        .columns(['id', 'user_id', 'networks', 'metadata', 'length', 'expires_at'])
        .expression(sql`select ${newId(db)}::uuid, ${userId}::uuid,
          ${networks.map(({ name }) => name)}::text[], ${metadata}::text,
          ${length}::bigint, now() + make_interval(secs => ${seconds}::integer)
          where ${isLiveSession(token)} and ${limitsUploads(quota)}`).returning(columns))
        .selectFrom('created').selectAll().where(confirmSession(trx, 'created', token))
        .executeTakeFirstOrThrow(() => new InvalidToken())
      if (once) await insertResult(trx, 'resumable-upload', created.id, once)
      return withNumbers(created)
    }))
  } catch (error) {
    throw violates(db, error, 'resumable_uploads', 'upload_quota') ? new QuotaExceeded() : error
  }
}

// Locks the owner before anything else of the owner, as every change of uploads does. Throws `InvalidToken` if the user
// was deleted.
async function requireOwner (trx: Database, userId: string): Promise<void> {
  await trx.selectFrom('users').select('id').where('id', '=', userId).forKeyShare()
    .executeTakeFirstOrThrow(() => new InvalidToken())
}

/** Returns an upload of a user that has not expired, or undefined. */
export async function findResumableUpload (
  db: Database, id: string, userId: string
): Promise<ResumableUploadRow | undefined> {
  if (!isUuid(id)) return
  const row = await db.selectFrom('resumable_uploads').select(columns)
    .where('id', '=', id).where('user_id', '=', userId).where('expires_at', '>', sql<Date>`now()`).executeTakeFirst()
  return row && withNumbers(row)
}

/** Returns the unfinished uploads of a user, newest first. They are few. */
export async function listResumableUploads (db: Database, userId: string): Promise<ResumableUploadRow[]> {
  const rows = await db.selectFrom('resumable_uploads').select(columns)
    .where('user_id', '=', userId).where('upload_id', 'is', null).where('expires_at', '>', sql<Date>`now()`)
    .orderBy('id', 'desc').execute()
  return rows.map(withNumbers)
}

/**
 * Makes a request the one that continues an unfinished upload, in the place of any other one, which can add nothing any
 * more. Throws `UploadNotFound`, and `UploadOffsetConflict` if it has another offset.
 */
export async function continueUpload (
  db: Database, id: string, userId: string, offset: number
): Promise<ContinuedUpload> {
  const writer = newId(db)
  const row = isUuid(id) && await db.updateTable('resumable_uploads').set({ writer })
    .where('id', '=', id).where('user_id', '=', userId).where('received', '=', `${offset}`)
    .where('upload_id', 'is', null).where('expires_at', '>', sql<Date>`now()`)
    .returning([...columns, 'parts']).executeTakeFirst()
  if (row) return { ...withNumbers(row), writer }
  throw await findResumableUpload(db, id, userId) ? new UploadOffsetConflict() : new UploadNotFound()
}

/**
 * Records the parts of an upload, of which further ones were stored. Throws `UploadTakenOver` if another request
 * continues it, `UploadNotFound`, and `InvalidToken` if the session has ended. The token may have expired, since an
 * upload takes longer.
 */
export async function recordParts (
  db: Database, upload: ContinuedUpload, parts: readonly UploadPart[], token: WriterToken
): Promise<void> {
  const received = parts.reduce((sum, [, size]) => sum + size, 0)
  const query = db.with('recorded', (cte) => cte.updateTable('resumable_uploads')
    .set({ received, parts: sql<UploadPart[]>`${JSON.stringify(parts)}::text::jsonb` })
    .where('id', '=', upload.id).where('writer', '=', upload.writer).where('received', '=', `${upload.received}`)
    .where('upload_id', 'is', null).where('expires_at', '>', sql<Date>`now()`).where(isLiveSession(token))
    .returning('id'))
    .selectFrom('recorded').select('id').where(confirmSessions(db, 'recorded', idsOf(token)))
  const rows = await rejectEnded(() => query.execute())
  if (rows.length > 0) return
  await requireLiveSession(db, token)
  throw await whyNotContinued(db, upload)
}

/**
 * Records that an upload has become another one, in the transaction that creates the record of that one. Call it
 * first. It does not count toward the quota any more. Throws `UploadTakenOver`, `UploadNotFound`, `InvalidToken`.
 */
export async function finishResumableUpload (trx: Database, upload: ContinuedUpload, uploadId: string): Promise<void> {
  await requireOwner(trx, upload.userId)
  const { numUpdatedRows } = await trx.updateTable('resumable_uploads')
    .set({ upload_id: uploadId, received: upload.length, parts: sql<UploadPart[]>`'[]'::jsonb`, writer: null })
    .where('id', '=', upload.id).where('writer', '=', upload.writer).where('received', '=', `${upload.received}`)
    .where('upload_id', 'is', null).where('expires_at', '>', sql<Date>`now()`).executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) throw await whyNotContinued(trx, upload)
}

const whyNotContinued = async (db: Database, { id, userId }: ContinuedUpload): Promise<Error> =>
  await findResumableUpload(db, id, userId) ? new UploadTakenOver() : new UploadNotFound()

/**
 * Deletes an upload of a user. Returns its parts, which nothing refers to any more. Throws `UploadNotFound`, and
 * `InvalidToken` if the session has ended.
 */
export async function deleteResumableUpload (
  db: Database, id: string, userId: string, token: WriterToken
): Promise<UploadPart[]> {
  if (!isUuid(id)) throw new UploadNotFound()
  const query = db.with('deleted', (cte) => cte.deleteFrom('resumable_uploads').where('id', '=', id)
    .where('user_id', '=', userId).where('expires_at', '>', sql<Date>`now()`).where(isLiveSession(token))
    .returning('parts'))
    .selectFrom('deleted').selectAll().where(confirmSession(db, 'deleted', token))
  const row = await rejectEnded(() => query.executeTakeFirst())
  if (row) return row.parts
  await requireLiveSession(db, token)
  throw new UploadNotFound()
}

/**
 * Deletes at most `limit` uploads that have expired, each after `remove` has removed its parts. Two nodes never work on
 * the same one. Returns how many of them were deleted, and how many were unfinished.
 *
 * @param remove removes a part and returns whether it no longer exists
 */
export async function deleteExpiredResumableUploads (
  db: Database, limit: number, remove: (part: string) => Promise<boolean>
): Promise<{ deleted: number, unfinished: number }> {
  return db.transaction().execute(async (trx) => {
    await allowPauses(trx)
    const rows = await trx.selectFrom('resumable_uploads').select(['id', 'parts', 'upload_id as uploadId'])
      .where('expires_at', '<=', sql<Date>`now()`).orderBy('expires_at').limit(limit).forUpdate().skipLocked().execute()
    const isRemoved = await Promise.all(rows.map(async ({ parts }) => {
      for (const [id] of parts) if (!await remove(id)) return false
      return true
    }))
    const removed = rows.filter((_, index) => isRemoved[index])
    await trx.deleteFrom('resumable_uploads')
      .where('id', '=', sql<string>`any(${removed.map(({ id }) => id)}::uuid[])`).execute()
    return { deleted: removed.length, unfinished: removed.filter(({ uploadId }) => uploadId === null).length }
  })
}

/** Makes the unfinished uploads of a user expire. Call it in a transaction that has locked the user. */
export async function expireResumableUploads (trx: Database, userId: string): Promise<void> {
  await trx.updateTable('resumable_uploads').set({ expires_at: sql<Date>`now()`, writer: null })
    .where('user_id', '=', userId).where('upload_id', 'is', null).execute()
}

/** Returns those ids of stored parts that look like ids and belong to no upload. */
export async function listUnrecordedParts (db: Database, ids: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select part->>0 as id from ${sql.id(schemaOf(db), 'resumable_uploads')}, jsonb_array_elements(parts) as part
    where part->>0 = any(${ids}::text[])`.execute(db)
  const recorded = new Set(rows.map(({ id }) => id))
  return ids.filter((id) => isUuid(id) && !recorded.has(id))
}
