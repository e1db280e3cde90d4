import { sql } from 'kysely'
import { InvalidToken } from '../schema/errors.ts'
import { allowPauses, inOrder, isUuid, violates } from './postgres.ts'
import type { Database, Row, UploadsTable } from './tables.ts'

export type UploadRow = Row<UploadsTable, 'id' | 'filename' | 'media_type' | 'sha256'>

const columns = ['id', 'filename', 'media_type as mediaType', 'sha256'] as const

/** The uploads of some ids, in their order; `undefined` for an unknown id and for one that lost its owner. */
export async function findUploads (db: Database, ids: readonly string[]): Promise<(UploadRow | undefined)[]> {
  const rows = await db.selectFrom('uploads').select(columns)
    .where('id', '=', sql<string>`any(${ids.filter(isUuid)}::uuid[])`)
    .where('user_id', 'is not', null).where('user_id', 'not in', ({ selectFrom }) => selectFrom('deleted_users').select('deleted_users.user_id'))
    .execute()
  return inOrder(ids, rows)
}

export interface NewUpload {
  id: string
  userId: string
  filename: string
  mediaType: string
  /** Octets. */
  size: number
  /** Hexadecimal. */
  sha256: string
  description: string
}

/** Records a stored file. Throws `InvalidToken` where its user was deleted a moment ago. */
export async function insertUpload (db: Database, { userId, mediaType, ...upload }: NewUpload): Promise<void> {
  try {
    await db.insertInto('uploads').values({ ...upload, user_id: userId, media_type: mediaType }).execute()
  } catch (error) {
    throw violates(error, 'uploads_user_id_fkey') ? new InvalidToken() : error
  }
}

/**
 * Deletes records that lost their owner, at most `limit` of them and each only once `remove` has removed its
 * file. Two nodes never work on the same record. How many were deleted.
 *
 * @param remove whether the file of an id is gone
 */
export async function deleteOwnerlessUploads (db: Database, limit: number, remove: (id: string) => Promise<boolean>): Promise<number> {
  return db.transaction().execute(async (trx) => {
    await allowPauses(trx)
    const rows = await trx.selectFrom('uploads').select('id').where('user_id', 'is', null)
      .orderBy('id').limit(limit).forUpdate().skipLocked()
      .execute()
    const gone: string[] = []
    for (const { id } of rows) if (await remove(id)) gone.push(id)
    await trx.deleteFrom('uploads').where('id', '=', sql<string>`any(${gone}::uuid[])`).execute()
    return gone.length
  })
}

/** Returns those of some file names that are the id of an upload and have no record. Other files are not Usher's. */
export async function listUnrecorded (db: Database, ids: readonly string[]): Promise<string[]> {
  const rows = await db.selectFrom('uploads').select('id').where('id', '=', sql<string>`any(${ids.filter(isUuid)}::uuid[])`).execute()
  const recorded = new Set(rows.map(({ id }) => id))
  return ids.filter((id) => isUuid(id) && !recorded.has(id))
}

/** What tells this database from another that is given the same folder: when its tables were made. */
export async function installationOf (db: Database, schema: string): Promise<string> {
  const { rows } = await sql<{ timestamp: string }>`select timestamp from ${sql.id(schema, 'migrations')} order by name limit 1`.execute(db)
  return rows[0]!.timestamp.replaceAll(':', '-')
}
