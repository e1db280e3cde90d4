import { expressionBuilder, sql, type ExpressionBuilder, type QueryCreator } from 'kysely'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import type { Match } from '../../schema/http/entity-tag.ts'
import { PreconditionFailed } from '../../schema/http/errors.ts'
import { QuotaExceeded, UploadNotFound } from '../../schema/uploads/upload.ts'
import { actorAuditColumns, type NewAuditEntry } from '../audit/audit.ts'
import { entryColumns, withEntryEvents } from '../audit/events.ts'
import { newId } from '../driver/ids.ts'
import { isInTime } from '../driver/write-in-time.ts'
import {
  detectConflict, isAdmitted, keyedOf, KeyTaken, withIdempotencyKeys, withStoredResult, type StoredResult,
} from '../idempotency/idempotency.ts'
import { selectWritten } from '../idempotency/select-written.ts'
import { actorValue, withEvents } from '../outbox/store.ts'
import { confirmSession, isLiveSession, rejectEnded, requireLiveSession } from '../access/live-sessions.ts'
import type { WriterToken } from '../access/live-tokens.ts'
import { toPage, type Page } from '../tables/page.ts'
import { allowPauses, inOrder, isUuid, violates } from '../driver/postgres.ts'
import type { Row } from '../tables/row.ts'
import type { Database, Tables } from '../tables/index.ts'
import type { UploadsTable } from '../tables/uploads.ts'
import { hasVersion, versionsOf } from '../users/preconditions.ts'
import { mayRemoveUploads } from './removal.ts'
import { limitsUploads, lockingUsage, type UploadQuota } from './usage.ts'

export type UploadRow = Row<
  UploadsTable,
  'id' | 'user_id' | 'filename' | 'media_type' | 'size' | 'sha256' | 'description' | 'is_private' | 'created_at' |
  'renamed_at' | 'row_version'
>

const { selectFrom } = expressionBuilder<Tables, never>()

const columns = [
  'id', 'user_id as userId', 'filename', 'media_type as mediaType', 'size', 'sha256', 'description',
  'is_private as isPrivate', 'created_at as createdAt', 'renamed_at as renamedAt', 'row_version as rowVersion',
] as const

// The condition that an upload has an owner who was not deleted.
const visible = (query: ExpressionBuilder<Tables, 'uploads'>) => query.and([
  query('user_id', 'is not', null), query('user_id', 'not in', query.selectFrom('deleted_users').select('user_id')),
])

/**
 * Returns the uploads with these ids, in the same order. An unknown id, or an upload without an owner, yields
 * `undefined`.
 */
export async function findUploads (db: Database, ids: readonly string[]): Promise<(UploadRow | undefined)[]> {
  const rows = await db.selectFrom('uploads').select(columns)
    .where('id', '=', sql<string>`any(${ids.filter(isUuid)}::uuid[])`).where(visible)
    .execute()
  return inOrder(ids, rows)
}

export interface ListUploadsQuery {
  limit: number
  /** The id of the last upload of the previous page. */
  after?: string | undefined
  /** Whether private uploads are left out. */
  onlyPublic: boolean
}

/**
 * Returns a page of the uploads of all users, newest first, by keyset. Ids are UUIDv7, so they are in the order in
 * which the uploads began.
 */
export async function listUploads (
  db: Database, { limit, after, onlyPublic }: ListUploadsQuery
): Promise<Page<UploadRow>> {
  const rows = await db.selectFrom('uploads').select(columns).where(visible)
    .$if(onlyPublic, (query) => query.where('is_private', '=', false))
    .$if(after !== undefined, (query) => query.where('id', '<', after!))
    .orderBy('id', 'desc').limit(limit + 1)
    .execute()
  return toPage(rows, limit)
}

/** The key of a page of a user's uploads in a batch: that of `ListUploadsQuery`, and the user. */
export type UserUploadsKey = `${string}:${number}:${string}:${boolean}`

/** Returns the key to read a page of the uploads of a user with. Nobody has an id that is malformed. */
export function userUploadsKey (userId: string, { limit, after, onlyPublic }: ListUploadsQuery): UserUploadsKey {
  return `${isUuid(userId) ? userId : NIL}:${limit}:${after ?? MAX}:${onlyPublic}`
}

/** Returns pages of the uploads of several users, like `listUploads`, as one statement. */
export async function listUploadsOfUsers (
  db: Database, keys: readonly UserUploadsKey[]
): Promise<Page<UploadRow>[]> {
  const asked = keys.map((key) => key.split(':') as [string, string, string, string])
  const all = (index: 0 | 1 | 2 | 3) => asked.map((parts) => parts[index])
  const given = sql<{ place: number, owner: string, rows: number, before: string, open: boolean }>`unnest(
    ${keys.map((_, place) => place)}::int[], ${all(0)}::uuid[], ${all(1)}::int[], ${all(2)}::uuid[], ${all(3)}::boolean[]
  )`.as<'asked'>(sql`asked(place, owner, rows, before, open)`)
  const rows = await db.selectFrom(given)
    .innerJoinLateral((lateral) => lateral.selectFrom('uploads').select(columns)
      .whereRef('user_id', '=', 'asked.owner').whereRef('id', '<', 'asked.before').where(visible)
      .where(({ or, eb, ref }) => or([eb('is_private', '=', false), eb(ref('asked.open'), '=', false)]))
      .orderBy('id', 'desc').limit(sql<number>`asked.rows + 1`).as('upload'), (join) => join.onTrue())
    .selectAll('upload').select('place').orderBy('place').orderBy('id', 'desc').execute()
  const pages: UploadRow[][] = keys.map(() => [])
  for (const { place, ...row } of rows) pages[place]!.push(row)
  return pages.map((page, index) => toPage(page, Number(asked[index]![1])))
}

const NIL = '00000000-0000-0000-0000-000000000000'
const MAX = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Who changes an upload. Null if it is the host. */
export type UploadWriter = { id: string, token: WriterToken } | null

/** The conditions of a change of an upload. */
export interface UploadConditions {
  /** That of `isInTime`. */
  until: string
  /** The versions that the upload may have. */
  match?: Match
  /** The key under which the result is stored. */
  once?: ResultKey | undefined
  /** The entry of the account log to write with the change, if there is one. */
  entry?: NewAuditEntry | undefined
}

export interface UploadChanges { filename?: string, description?: string, isPrivate?: boolean }

/**
 * Changes the members that are given. Returns the upload. Throws `UploadNotFound`, `PreconditionFailed`, `InvalidToken`
 * if the session has ended, and `KeyTaken` if the key `once` is taken.
 */
export async function updateUpload (
  db: Database, id: string, { filename, description, isPrivate }: UploadChanges, writer: UploadWriter,
  { until, match, once, entry }: UploadConditions
): Promise<UploadRow> {
  const versions = versionsOf(match)
  const keyed = keyedOf([id], [once])
  const statement = (keyed ? withIdempotencyKeys(db, keyed) : db).with('updated', (cte) => cte.updateTable('uploads')
    .set({
      ...filename !== undefined && { filename, renamed_at: renamedAt(filename) },
      ...description !== undefined && { description },
      ...isPrivate !== undefined && { is_private: isPrivate },
    })
    .where('id', '=', id).where(visible).where(isInTime(until)).where(isLiveSession(writer?.token))
    .$if(keyed !== undefined, (query) => query.where(isAdmitted('id')))
    .$if(versions !== null, (query) => query.where(hasVersion(sql.ref('row_version'), sql`${versions}`)))
    .returningAll())
  const query = withEntry(withEvents(statement, db, 'upload.updated', {
    from: 'updated', ...uploadData('updated', actorValue(writer?.id ?? null)),
  }), db, 'updated', entry).with('shown', (cte) => cte.selectFrom('updated').select(columns))
  const ending = {
    from: 'shown', kind: 'upload-update', keyed, condition: confirmSession(db, 'shown', writer?.token),
  } as const
  const { written: [upload], refused } = await rejectEnded(() => selectWritten<UploadRow>(db, query, ending))
  if (refused.size > 0) throw new KeyTaken()
  return upload ?? await whyUnchanged(db, id, match, writer)
}

// A cache compares dates by the second, so each name has a second of its own.
const renamedAt = (filename: string) => sql<Date>`case when filename = ${filename} then renamed_at
  else greatest(now(), coalesce(renamed_at, created_at) + interval '1 second') end`

/**
 * Takes the owner of an upload away, so that it is invisible and `deleteOwnerlessUploads` removes its file, and then
 * its record. Throws what `updateUpload` throws.
 */
export async function deleteUpload (
  db: Database, id: string, writer: UploadWriter, { until, match, once, entry }: UploadConditions
): Promise<void> {
  const versions = versionsOf(match)
  const keyed = keyedOf([id], [once])
  const statement = (keyed ? withIdempotencyKeys(db, keyed) : db)
    .with('old', (cte) => cte.selectFrom('uploads').selectAll().where('id', '=', id).where(visible)
      .where(isInTime(until)).where(isLiveSession(writer?.token))
      .$if(keyed !== undefined, (query) => query.where(isAdmitted('id')))
      .$if(versions !== null, (query) => query.where(hasVersion(sql.ref('row_version'), sql`${versions}`)))
      .forUpdate())
    .with('deleted', (cte) => cte.updateTable('uploads').from('old').whereRef('uploads.id', '=', 'old.id')
      .set({ user_id: null }).returning('uploads.id'))
  const query = withEntry(withEvents(statement, db, 'upload.deleted', {
    from: 'old', ...uploadData('old', actorValue(writer?.id ?? null)),
  }), db, 'old', entry).with('known', (cte) => cte.selectFrom('old').innerJoin('deleted', 'deleted.id', 'old.id')
    .select(['old.id', 'old.user_id as userId']))
  // The trigger that counts uploads would take the lock of the counter later, when the session is not looked at any
  // more.
  const locked = sql`known cross join lateral ${lockingUsage(db, 'known.userId')}`
  const condition = confirmSession(db, locked, writer?.token)
  const ending = { from: 'known', kind: 'upload-deletion', keyed, condition, hasVersion: false } as const
  const { written, refused } = await rejectEnded(() => selectWritten(db, query, ending))
  if (refused.size > 0) throw new KeyTaken()
  if (written.length === 0) await whyUnchanged(db, id, match, writer)
}

// Adds to a statement that it writes an entry to the account log if it has changed a row.
function withEntry<Query extends object> (
  query: Query, db: Database, from: 'updated' | 'old', entry: NewAuditEntry | undefined
): Query {
  if (!entry) return query
  const { action, actorId, userId, sessionId, address, userAgent, keyId } = entry
  const noted = (query as QueryCreator<Tables>).with('noted', (cte) => cte.insertInto('audit').columns(actorAuditColumns).expression(sql`
    select ${newId(db)}::uuid, ${action}::text, ${actorId}::uuid, ${userId}::uuid, ${sessionId}::uuid, ${address}::text,
      ${userAgent}::text, ${keyId}::uuid from ${sql.ref(from)}`).returning(entryColumns))
  return withEntryEvents(noted, db, ['noted']) as unknown as Query
}

// Throws why a change has matched no row.
async function whyUnchanged (db: Database, id: string, match: Match, writer: UploadWriter): Promise<never> {
  await requireLiveSession(db, writer?.token)
  if (versionsOf(match) === null) throw new UploadNotFound()
  throw (await findUploads(db, [id]))[0] ? new PreconditionFailed() : new UploadNotFound()
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
  /** Whether only the owner, and those whom the policy admits, may read it. */
  isPrivate: boolean
}

/**
 * Creates the record of a stored file. Throws `InvalidToken` if its user was deleted or the session has ended
 * meanwhile, `QuotaExceeded` if the user's uploads would exceed the quota, and `KeyTaken` if the key `once` is taken.
 */
export async function insertUpload (
  db: Database, { userId, mediaType, isPrivate, ...upload }: NewUpload, quota: UploadQuota, token: WriterToken,
  once?: ResultKey
): Promise<void> {
  const keyed = keyedOf([upload.id], [once])
  const values = { ...upload, user_id: userId, media_type: mediaType, is_private: isPrivate }
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
    await requireLiveSession(db, token)
    throw new KeyTaken()
  } catch (error) {
    if (violates(db, error, 'uploads', 'upload_quota')) throw new QuotaExceeded()
    throw violates(db, error, 'uploads', 'uploads_user_id_fkey') ? new InvalidToken() : error
  }
}

/** Returns the upload that the first request has created. */
export function restoreUpload ({ result }: StoredResult): Omit<NewUpload, 'userId'> {
  const { id, filename, mediaType, size, sha256, description, isPrivate } = JSON.parse(result!) as NewUpload
  return { id, filename, mediaType, size, sha256, description, isPrivate }
}

/** Returns an upload that the first request has changed, as it was then. */
export function restoreChangedUpload ({ result, rowVersion }: StoredResult): UploadRow {
  const { createdAt, renamedAt, size, ...row } = JSON.parse(result!) as Record<string, unknown>
  const dates = {
    createdAt: new Date(createdAt as string), renamedAt: renamedAt === null ? null : new Date(renamedAt as string),
  }
  return { ...row, ...dates, size: String(size), rowVersion } as unknown as UploadRow
}

/** Where a statement finds the event of each upload that it changes, in rows with the columns of `uploads`. */
export function uploadData (row: string, actor: string | ReturnType<typeof actorValue>) {
  const members = { uploadId: 'id', userId: 'user_id', filename: 'filename', mediaType: 'media_type', size: 'size' }
  const data = Object.fromEntries(Object.entries(members).map(([member, column]) => [member, `${row}.${column}`]))
  const visibility = `case when ${row}.is_private then 'private' else 'public' end`
  return { subject: `${row}.id`, data: { ...data, visibility, actorId: actor } }
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

/**
 * Runs a function while nobody can delete an upload, and returns true; false, without running it, if there is no such
 * upload.
 */
export async function whileKept (db: Database, id: string, run: () => Promise<void>): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    await allowPauses(trx)
    const row = await trx.selectFrom('uploads').select('id').where('id', '=', id).where(visible).forShare()
      .executeTakeFirst()
    if (row) await run()
    return row !== undefined
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
