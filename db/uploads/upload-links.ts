import { expressionBuilder, sql } from 'kysely'
import { UploadNotFound } from '../../schema/uploads/upload.ts'
import { TooManyLinks } from '../../schema/uploads/upload-link.ts'
import { actorAuditColumns, insertAuditEntries, type AuditContext, type NewAuditEntry } from '../audit/audit.ts'
import { entryColumns, withEntryEvents } from '../audit/events.ts'
import { newId } from '../driver/ids.ts'
import { isUuid } from '../driver/postgres.ts'
import { confirmSession, isLiveSession, rejectEnded, requireLiveSession } from '../access/live-sessions.ts'
import type { Row } from '../tables/row.ts'
import type { Database, Tables } from '../tables/index.ts'
import type { UploadLinksTable } from '../tables/uploads.ts'
import type { UploadRow, UploadWriter } from './uploads.ts'

export type UploadLinkRow =
  Row<UploadLinksTable, 'id' | 'name' | 'created_at' | 'expires_at' | 'created_by' | 'key_id'> & {
    /** The name of the API key; null without one, if it was deleted, and for one of somebody else than the owner. */
    keyName: string | null
  }

/** What is shown of a link. */
export const linkColumns = [
  'id', 'name', 'created_at as createdAt', 'expires_at as expiresAt', 'created_by as createdBy', 'key_id as keyId',
  expressionBuilder<Tables, 'upload_links'>().selectFrom('api_keys').select('api_keys.name')
    .whereRef('api_keys.id', '=', 'upload_links.key_id').whereRef('api_keys.user_id', '=', 'upload_links.owner_id')
    .as('keyName'),
] as const

/** How many links there may be at a time. */
const MAX_LINKS_PER_UPLOAD = 20
const MAX_LINKS_PER_OWNER = 1000

export interface NewUploadLink {
  name: string
  secretHash: Uint8Array
  /** How long it works. */
  seconds: number
}

/**
 * Creates a link to an upload, and writes an entry to the account log. Throws `UploadNotFound` if the upload was
 * deleted meanwhile, `TooManyLinks`, and `InvalidToken` if the session has ended.
 */
export async function insertUploadLink (
  db: Database, { id: uploadId, userId: ownerId }: Pick<UploadRow, 'id' | 'userId'>,
  { name, secretHash, seconds }: NewUploadLink, writer: UploadWriter, entry: NewAuditEntry
): Promise<UploadLinkRow> {
  return rejectEnded(() => db.transaction().execute(async (trx) => {
    // A repair of one of the accounts locks it as well, so it voids this link, or has ended the session. The lock also
    // makes links of the owner wait for one another, so that they can be counted.
    const users = [ownerId!, ...writer ? [writer.id] : []]
    await trx.selectFrom('users').select('id').where('id', '=', sql<string>`any(${users}::uuid[])`)
      .orderBy('id').forNoKeyUpdate().execute()
    // A deletion waits, or has taken the owner away.
    await trx.selectFrom('uploads').select('id').where('id', '=', uploadId).where('user_id', '=', ownerId)
      .where('user_id', 'not in', ({ selectFrom }) => selectFrom('deleted_users').select('deleted_users.user_id'))
      .forShare().executeTakeFirstOrThrow(() => new UploadNotFound())
    const { ofUpload, ofOwner } = await trx.selectFrom('upload_links')
      .select(({ fn }) => [
        fn.countAll<string>().filterWhere('upload_id', '=', uploadId).as('ofUpload'),
        fn.countAll<string>().as('ofOwner'),
      ])
      .where('owner_id', '=', ownerId!).where('expires_at', '>', sql<Date>`now()`).executeTakeFirstOrThrow()
    if (Number(ofUpload) >= MAX_LINKS_PER_UPLOAD || Number(ofOwner) >= MAX_LINKS_PER_OWNER) throw new TooManyLinks()
    const link = await trx.insertInto('upload_links').values({
      id: newId(db),
      upload_id: uploadId,
      owner_id: ownerId!,
      created_by: writer?.id ?? null,
      key_id: entry.keyId,
      name,
      secret_hash: secretHash,
      expires_at: sql<Date>`now() + make_interval(secs => ${seconds}::integer)`,
    }).returning(linkColumns).executeTakeFirstOrThrow()
    await insertAuditEntries(trx, [entry])
    await sql`select ${confirmSession(trx, '(select 1) as one', writer?.token)}`.execute(trx)
    return link
  }))
}

/** Returns the links of an upload that have not expired, newest first. */
export async function listUploadLinks (db: Database, uploadId: string): Promise<UploadLinkRow[]> {
  return db.selectFrom('upload_links').select(linkColumns).where('upload_id', '=', uploadId)
    .where('expires_at', '>', sql<Date>`now()`).orderBy('id', 'desc').execute()
}

/** Returns the upload of a link that has not expired, and the owner of the upload. Undefined if there is none. */
export async function findUploadLink (
  db: Database, id: string
): Promise<{ uploadId: string, ownerId: string } | undefined> {
  if (!isUuid(id)) return undefined
  return db.selectFrom('upload_links').select(['upload_id as uploadId', 'owner_id as ownerId']).where('id', '=', id)
    .where('expires_at', '>', sql<Date>`now()`).executeTakeFirst()
}

/** A link that works now. */
export interface LiveUploadLink {
  id: string
  uploadId: string
  /** Milliseconds until it expires. */
  msLeft: number
}

/** Returns the links with the secrets that have these hashes (hexadecimal), in the same order. */
export async function findUploadLinks (
  db: Database, hashes: readonly string[]
): Promise<(LiveUploadLink | undefined)[]> {
  const rows = await db.selectFrom('upload_links')
    .select([
      'id', 'upload_id as uploadId', sql<string>`encode(secret_hash, 'hex')`.as('hash'),
      sql<number>`extract(epoch from expires_at - clock_timestamp())::float8 * 1000`.as('msLeft'),
    ])
    .where('secret_hash', '=', sql<Uint8Array>`any(array(select decode(hash, 'hex') from unnest(${hashes}::text[]) hash))`)
    .where('expires_at', '>', sql<Date>`clock_timestamp()`).execute()
  const byHash = new Map(rows.map(({ hash, ...link }) => [hash, link]))
  return hashes.map((hash) => byHash.get(hash))
}

/** Returns whether each of the links works, in the same order. */
export async function areLinksLive (db: Database, ids: readonly string[]): Promise<boolean[]> {
  const rows = await db.selectFrom('upload_links').select('id').where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .where('expires_at', '>', sql<Date>`clock_timestamp()`).execute()
  const live = new Set(rows.map(({ id }) => id))
  return ids.map((id) => live.has(id))
}

/**
 * Deletes a link of an upload, and writes an entry to the account log, as one statement. Returns whether there was such
 * a link. Throws `InvalidToken` if the session has ended.
 */
export async function deleteUploadLink (
  db: Database, uploadId: string, id: string, writer: UploadWriter, entry: NewAuditEntry
): Promise<boolean> {
  if (!isUuid(id)) return false
  const { action, actorId, userId, sessionId, address, userAgent, keyId } = entry
  const statement = db
    .with('deleted', (cte) => cte.deleteFrom('upload_links').where('id', '=', id).where('upload_id', '=', uploadId)
      .where(isLiveSession(writer?.token)).returning('id'))
    .with('noted', (cte) => cte.insertInto('audit').columns(actorAuditColumns).expression(sql`
      select ${newId(db)}::uuid, ${action}::text, ${actorId}::uuid, ${userId}::uuid, ${sessionId}::uuid, ${address}::text,
        ${userAgent}::text, ${keyId}::uuid from deleted`).returning(entryColumns))
  const query = withEntryEvents(statement, db, ['noted'])
    .selectFrom('deleted').select('id').where(confirmSession(db, 'deleted', writer?.token))
  const rows = await rejectEnded(() => query.execute())
  if (rows.length === 0) await requireLiveSession(db, writer?.token)
  return rows.length > 0
}

/**
 * Makes all links void that a user has created, and those to the uploads of the user. Call it in a transaction that has
 * locked the user.
 */
export async function voidUploadLinks (trx: Database, userId: string): Promise<void> {
  for (const column of ['owner_id', 'created_by'] as const) {
    await trx.deleteFrom('upload_links').where(column, '=', userId).execute()
  }
}

/**
 * Deletes the links that were created with an API key, and writes that to the account log. Call it in a transaction
 * that has locked the user of the key.
 * @param context who deletes them
 */
export async function revokeUploadLinksOfKey (trx: Database, keyId: string, context: AuditContext): Promise<void> {
  const rows = await trx.deleteFrom('upload_links').where('key_id', '=', keyId).returning('owner_id as userId').execute()
  const entries = rows.map(({ userId }) => ({ ...context, action: 'upload-link.revoke' as const, userId }))
  if (entries.length > 0) await insertAuditEntries(trx, entries)
}
