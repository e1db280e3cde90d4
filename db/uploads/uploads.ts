import { expressionBuilder, sql } from 'kysely'
import { InvalidToken } from '../../schema/auth/login.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { QuotaExceeded } from '../../schema/uploads/upload.ts'
import {
  detectConflict, isAdmitted, keyedOf, KeyTaken, withIdempotencyKeys, withStoredResult, type StoredResult,
} from '../idempotency/idempotency.ts'
import { actorValue, withEvents } from '../outbox/store.ts'
import { confirmSession, isLiveSession, rejectEnded, requireLiveSession } from '../sessions/live-sessions.ts'
import type { WriterToken } from '../sessions/live-tokens.ts'
import { toPage, type Page } from '../tables/page.ts'
import { allowPauses, inOrder, isUuid, violates } from '../driver/postgres.ts'
import type { Row } from '../tables/row.ts'
import type { Database, Tables } from '../tables/index.ts'
import type { UploadsTable } from '../tables/content.ts'
import { mayRemoveUploads } from './removal.ts'
import { limitsUploads, lockingUsage, type UploadQuota } from './usage.ts'

export type UploadRow = Row<
  UploadsTable,
  'id' | 'user_id' | 'filename' | 'media_type' | 'size' | 'sha256' | 'description' | 'created_at' | 'row_version'
>

const { selectFrom } = expressionBuilder<Tables, never>()

const columns = [
  'id', 'user_id as userId', 'filename', 'media_type as mediaType', 'size', 'sha256', 'description',
  'created_at as createdAt', 'row_version as rowVersion',
] as const

/**
 * Returns the uploads with these ids, in the same order. An unknown id, or an upload without an owner, yields
 * `undefined`.
 */
export async function findUploads (db: Database, ids: readonly string[]): Promise<(UploadRow | undefined)[]> {
  const rows = await db.selectFrom('uploads').select(columns)
    .where('id', '=', sql<string>`any(${ids.filter(isUuid)}::uuid[])`)
    .where('user_id', 'is not', null)
    .where('user_id', 'not in', ({ selectFrom }) => selectFrom('deleted_users').select('deleted_users.user_id'))
    .execute()
  return inOrder(ids, rows)
}

export interface ListUploadsQuery {
  userId?: string | undefined
  limit: number
  /** The id of the last upload of the previous page. */
  after?: string | undefined
}

/**
 * Returns a page of uploads, newest first, by keyset. Ids are UUIDv7, so they are in the order in which the uploads
 * began.
 */
export async function listUploads (db: Database, { userId, limit, after }: ListUploadsQuery): Promise<Page<UploadRow>> {
  if (userId !== undefined && !isUuid(userId)) return { rows: [], next: null }
  const rows = await db.selectFrom('uploads').select(columns)
    .where('user_id', 'is not', null)
    .where('user_id', 'not in', ({ selectFrom }) => selectFrom('deleted_users').select('deleted_users.user_id'))
    .$if(userId !== undefined, (query) => query.where('user_id', '=', userId!))
    .$if(after !== undefined, (query) => query.where('id', '<', after!))
    .orderBy('id', 'desc').limit(limit + 1)
    .execute()
  return toPage(rows, limit)
}

/**
 * Takes the owner of an upload away, so that it is invisible and `deleteOwnerlessUploads` removes its file, and then
 * its record. Returns whether there was such an upload. Throws `InvalidToken` if the session has ended.
 * @param actor the user who deletes it, and the token; null if it is the host
 */
export async function deleteUpload (
  db: Database, id: string, actor: { id: string, token: WriterToken } | null
): Promise<boolean> {
  const statement = db
    .with('old', (cte) => cte.selectFrom('uploads').selectAll().where('id', '=', id).where('user_id', 'is not', null)
      .where(isLiveSession(actor?.token)).forUpdate())
  const isLive = confirmSession(db, sql`old cross join lateral ${lockingUsage(db, 'old.user_id')}`, actor?.token)
  const query = withEvents(statement, db, 'upload.deleted', {
    from: 'old', ...uploadData('old', actorValue(actor?.id ?? null)),
  })
    .updateTable('uploads').from('old').whereRef('uploads.id', '=', 'old.id').where(isLive).set({ user_id: null })
  const { numUpdatedRows } = await rejectEnded(() => query.executeTakeFirstOrThrow())
  if (numUpdatedRows > 0n) return true
  await requireLiveSession(db, actor?.token.id)
  return false
}

export interface NewUpload {
  id: string
  userId: string
  filename: string
  mediaType: string
  /** Bytes. */
  size: number
  /** Hexadecimal. */
  sha256: string
  description: string
}

/**
 * Creates the record of a stored file. Throws `InvalidToken` if its user was deleted or the session has ended
 * meanwhile, `QuotaExceeded` if the user's uploads would exceed the quota, and `KeyTaken` if the key `once` is taken.
 */
export async function insertUpload (
  db: Database, { userId, mediaType, ...upload }: NewUpload, quota: UploadQuota, token: WriterToken, once?: ResultKey
): Promise<void> {
  const keyed = keyedOf([upload.id], [once])
  const values = { ...upload, user_id: userId, media_type: mediaType }
  const event = { from: 'created', ...uploadData('created', 'created.user_id') }
  try {
    const names = Object.keys(values) as (keyof typeof values)[]
    // The foreign key and the trigger would take these locks at the end of the statement, when the session is not
    // looked at any more.
    const owner = selectFrom('users').select('users.id').where('users.id', '=', userId).forKeyShare()
    const permitted = sql`${isLiveSession(token)} and ${limitsUploads(quota)}`
    const isLive = confirmSession(db, sql`created cross join lateral ${lockingUsage(db, 'created.user_id')}`, token)
    if (!keyed) {
      const statement = db.with('created', (cte) => cte.insertInto('uploads').columns(names)
        .expression(sql`select ${sql.join(Object.values(values))} from ${owner} owner where ${permitted}`)
        .returningAll())
      const query = withEvents(statement, db, 'upload.created', event).selectFrom('created').select('id').where(isLive)
      await rejectEnded(() => query.executeTakeFirstOrThrow(() => new InvalidToken()))
      return
    }
    const statement = withIdempotencyKeys(db, keyed)
      .with('created', (cte) => cte.insertInto('uploads').columns(names)
        .expression(sql`select ${sql.join(Object.values(values))} from keyed cross join ${owner} owner
          where ${permitted} and ${isAdmitted('keyed.record_id')}`).returningAll())
      .with('shown', (cte) => cte.selectFrom('created').select(columns))
    const query = withStoredResult(withEvents(statement, db, 'upload.created', event), 'upload', 'shown')
      .selectFrom('shown').select('id').where(isLive)
    const rows = await detectConflict(db, () => rejectEnded(() => query.execute()))
    if (rows.length > 0) return
    await requireLiveSession(db, token.id)
    throw new KeyTaken()
  } catch (error) {
    if (violates(db, error, 'uploads', 'upload_quota')) throw new QuotaExceeded()
    throw violates(db, error, 'uploads', 'uploads_user_id_fkey') ? new InvalidToken() : error
  }
}

/** Returns the upload that the first request has created. */
export function restoreUpload ({ result }: StoredResult): Omit<NewUpload, 'userId'> {
  const { id, filename, mediaType, size, sha256, description } = JSON.parse(result!) as NewUpload
  return { id, filename, mediaType, size, sha256, description }
}

/** Where a statement finds the event of each upload that it changes, in rows with the columns of `uploads`. */
export function uploadData (row: string, actor: string | ReturnType<typeof actorValue>) {
  const members = { uploadId: 'id', userId: 'user_id', filename: 'filename', mediaType: 'media_type', size: 'size' }
  const data = Object.fromEntries(Object.entries(members).map(([member, column]) => [member, `${row}.${column}`]))
  return { subject: `${row}.id`, data: { ...data, actorId: actor } }
}

/**
 * Deletes at most `limit` records without an owner, each after `remove` has removed its file. Two nodes never work on
 * the same record. Returns the number of deleted records, which is 0 while a backup reads the files.
 *
 * @param remove removes the file of an upload and returns whether it no longer exists
 */
export async function deleteOwnerlessUploads (
  db: Database, limit: number, remove: (id: string) => Promise<boolean>
): Promise<number> {
  return db.transaction().execute(async (trx) => {
    await allowPauses(trx)
    if (!await mayRemoveUploads(trx)) return 0
    const rows = await trx.selectFrom('uploads').select('id').where('user_id', 'is', null)
      .orderBy('id').limit(limit).forUpdate().skipLocked()
      .execute()
    const isRemoved = await Promise.all(rows.map(({ id }) => remove(id)))
    const removed = rows.filter((_, index) => isRemoved[index]).map(({ id }) => id)
    await trx.deleteFrom('uploads').where('id', '=', sql<string>`any(${removed}::uuid[])`).execute()
    return removed.length
  })
}

/** Returns the file names that look like the id of an upload but have no record. Other files do not belong to Usher. */
export async function listUnrecorded (db: Database, ids: readonly string[]): Promise<string[]> {
  const rows = await db.selectFrom('uploads').select('id')
    .where('id', '=', sql<string>`any(${ids.filter(isUuid)}::uuid[])`).execute()
  const recorded = new Set(rows.map(({ id }) => id))
  return ids.filter((id) => isUuid(id) && !recorded.has(id))
}

/**
 * Returns a text that identifies this database among others that use the same folder: the time when its tables were
 * created.
 */
export async function installationOf (db: Database, schema: string): Promise<string> {
  const { rows } =
    await sql<{ timestamp: string }>`select timestamp from ${sql.id(schema, 'migrations')} order by name limit 1`
      .execute(db)
  return rows[0]!.timestamp.replaceAll(':', '-')
}
