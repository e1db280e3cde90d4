import { sql, type ExpressionBuilder, type QueryCreator, type SelectQueryBuilder } from 'kysely'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { Instant } from '../../schema/strings/text.ts'
import { members, shownMembers } from '../../schema/users/members.ts'
import { anyOf, ctid, violates } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import type { DraftRow } from '../posts/drafts.ts'
import type { PostRow } from '../posts/posts.ts'
import type { Row } from '../tables/row.ts'
import type { Database, Tables, UserRow } from '../tables/index.ts'
import type { IdempotencyKeysTable } from '../tables/idempotency.ts'

/**
 * The results of writes with idempotency keys (contract 10.4). A result is stored by the statement of its write, which
 * also decides that no other request with the key has written. No statement waits for another transaction with the same
 * key, because the other writes of a batch would wait as well.
 */

/** A write was not made, because another request with its key has made it or is making it. */
export class KeyTaken extends Error {}

/** What was done. */
export type ResultKind =
  'user' | 'upload' | 'upload-update' | 'upload-deletion' | 'invitation' | 'post' | 'post-update' | 'post-deletion' |
  'draft' | 'draft-update' | 'passkey' | 'resumable-upload' | 'organization'

/** A write with an idempotency key: the id of its record, and under what its result is stored. */
export interface KeyedWrite extends ResultKey { readonly id: string }

/** Returns the writes that have a key, or undefined if none has one. */
export function keyedOf (
  ids: readonly string[], keys: readonly (ResultKey | undefined)[]
): readonly KeyedWrite[] | undefined {
  const keyed = ids.flatMap((id, index) => keys[index] ? [{ id, ...keys[index] }] : [])
  return keyed.length > 0 ? keyed : undefined
}

/**
 * Begins a statement of writes, of which some have keys. Add the condition `isAdmitted` to the write, then end it by
 * `selectWritten` (`db/idempotency/select-written.ts`). A write whose key is taken is refused: its result exists, the
 * key was used for another request, or another transaction has the lock of the key until it ends.
 */
export function withIdempotencyKeys (db: Database, keyed: readonly KeyedWrite[]): Database {
  const all = <Name extends keyof KeyedWrite> (name: Name) => keyed.map((write) => write[name])
  return db
    .with('keyed', (cte) =>
      cte.selectFrom(sql<{ record_id: string, key: string, part: string, fingerprint: string }>`unnest(
      ${all('id')}::uuid[], ${all('key')}::uuid[], ${all('part')}::uuid[], ${all('fingerprint')}::text[]
    )`.as<'keyed'>(sql`keyed(record_id, key, part, fingerprint)`)).selectAll())
    .with('refused', (cte) => cte.selectFrom('keyed').select('record_id').where(({ or, exists, selectFrom }) => or([
      sql<boolean>`not pg_try_advisory_xact_lock(uuid_hash_extended(keyed.key, 0))`,
      exists(selectFrom('idempotency_keys')
        .select('kind').whereRef('idempotency_keys.key', '=', 'keyed.key').where(({ or, eb, ref }) => or([
          eb('idempotency_keys.part', '=', ref('keyed.part')),
          eb('idempotency_keys.fingerprint', '<>', ref('keyed.fingerprint')),
        ]))),
    ]))) as unknown as Database
}

/** The condition that a write is not refused. `id` is the column with the id of its record. */
export const isAdmitted = (id: string) => sql<boolean>`${sql.raw(id)} not in (select record_id from refused)`

/**
 * Adds to a statement that it stores the results of the writes with a key.
 * @param from the common table expression with the written rows, which have an `id` and, if the row has a version, a
 * `rowVersion`
 */
export function withStoredResult<Query extends object> (
  query: Query, kind: ResultKind, from: string, hasVersion = true
): Query {
  // A deletion has no record any more, and its own trigger must not erase its result.
  const record = kind.endsWith('-deletion') ? 'null::uuid' : 'keyed.record_id'
  return (query as QueryCreator<Tables>).with('kept', (cte) => cte.insertInto('idempotency_keys')
    .columns(['key', 'part', 'fingerprint', 'kind', 'record_id', 'result', 'row_version'])
    .expression(sql`select keyed.key, keyed.part, keyed.fingerprint, ${sql.lit(kind)}, ${sql.raw(record)}, row_to_json(${sql.raw(from)})::text,
      ${sql.raw(hasVersion ? `${from}."rowVersion"` : 'null::bigint')} from keyed inner join ${sql.raw(from)} on ${sql.raw(from)}.id = keyed.record_id`)) as unknown as Query
}

/**
 * Runs a statement with keys. Throws `KeyTaken` if another transaction has stored a result between the start of the
 * statement, which does not see that result, and its lock. The primary key detects the same request, and the trigger
 * `keep_one_request`, which reports the primary key as well, a different one.
 */
export async function detectConflict<Result> (db: Database, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    throw violates(db, error, 'idempotency_keys', 'idempotency_keys_pkey') ? new KeyTaken() : error
  }
}

/**
 * Runs a statement of several writes, of which some have keys. If it fails because a key is taken, nothing was written,
 * and each half of the writes is sent again, so that only the write with that key fails. In a transaction, which has
 * failed as well, throws `KeyTaken`.
 * @param run returns the result or the error of each write, in the same order
 */
export async function isolateConflicts<Item, Result> (
  db: Database, items: readonly Item[], run: (items: readonly Item[]) => Promise<(Result | Error)[]>
): Promise<(Result | Error)[]> {
  try {
    return await run(items)
  } catch (error) {
    if (!(error instanceof KeyTaken) || db.isTransaction) throw error
    if (items.length === 1) return [error]
    const half = Math.ceil(items.length / 2)
    const first = await isolateConflicts(db, items.slice(0, half), run)
    return [...first, ...await isolateConflicts(db, items.slice(half), run)]
  }
}

/**
 * Stores a result in the transaction of its write. Throws `KeyTaken`; the transaction must then be rolled back.
 * @param from selects what is stored, a row with an `id` and a `rowVersion`. By default, only the id is stored
 */
export async function insertResult (
  trx: Database, kind: ResultKind, recordId: string, { key, part, fingerprint }: ResultKey,
  from?: (db: Database) => SelectQueryBuilder<Tables, any, { id: string }>
): Promise<void> {
  await detectConflict(trx, async () => {
    const statement = withIdempotencyKeys(trx, [{ id: recordId, key, part, fingerprint }])
      .with('done', (cte) => (from?.(cte as unknown as Database) ?? cte.selectNoFrom([sql<string>`${recordId}::uuid`.as('id')]))
        .where(isAdmitted(`'${recordId}'::uuid`)))
    const rows = await withStoredResult(statement, kind, 'done', from !== undefined).selectFrom('done').select('id').execute()
    if (rows.length === 0) throw new KeyTaken()
  })
}

/** A result that is stored. */
export interface StoredResult extends Row<
  IdempotencyKeysTable, 'key' | 'part' | 'fingerprint' | 'kind' | 'record_id' | 'result' | 'row_version'
> {
  /** Whether the record was deleted since. */
  isGone: boolean
}

const toDate = (value: unknown) => new Date(value as string)
const instants = shownMembers.filter((name) => members[name].output['format'] === Instant['format'])

/** Returns the user that the first request has created, with the values at its creation. */
export function restoreUser ({ result, rowVersion }: StoredResult): UserRow {
  const row = JSON.parse(result!) as Record<string, unknown>
  for (const name of instants) row[name] = toDate(row[name])
  return { ...row, rowVersion } as unknown as UserRow
}

/** Returns a post that the first request has created, changed or deleted, as it was then. */
export function restorePost ({ result, rowVersion }: StoredResult): PostRow {
  const { createdAt, position, ...row } = JSON.parse(result!) as Record<string, unknown>
  return { ...row, createdAt: toDate(createdAt), position: String(position), rowVersion } as unknown as PostRow
}

/** Returns a draft that the first request has created or changed, as it was then. */
export function restoreDraft ({ result, rowVersion }: StoredResult): DraftRow {
  const { createdAt, publishAt, ...row } = JSON.parse(result!) as Record<string, unknown>
  return {
    ...row, createdAt: toDate(createdAt), publishAt: publishAt === null ? null : toDate(publishAt), rowVersion,
  } as unknown as DraftRow
}

/** Returns whether a result is that of a draft, which is not published yet. */
export const isOfDraft = ({ kind }: Pick<StoredResult, 'kind'>): boolean => kind === 'draft' || kind === 'draft-update'

function isGone (query: ExpressionBuilder<Tables, 'idempotency_keys'>) {
  const { or, and, not, exists, eb, selectFrom } = query
  const hasPost = exists(selectFrom('posts').select('posts.id').whereRef('posts.id', '=', 'record_id')
    .where('author_id', 'not in', selectFrom('deleted_users').select('deleted_users.user_id')))
  return or([
    eb('result', 'is', null),
    // These are hidden until they are deleted in the background.
    and([eb('kind', 'in', ['post', 'post-update']), not(hasPost)]),
    // A draft may have become a post.
    and([
      eb('kind', 'in', ['draft', 'draft-update']),
      not(exists(selectFrom('post_drafts').select('post_drafts.id').whereRef('post_drafts.id', '=', 'record_id'))),
      not(hasPost),
    ]),
    and([eb('kind', 'in', ['upload', 'upload-update']), not(exists(selectFrom('uploads').select('uploads.id')
      .whereRef('uploads.id', '=', 'record_id').where('user_id', 'is not', null)))]),
    and([eb('kind', '=', 'resumable-upload'), not(exists(selectFrom('resumable_uploads').select('resumable_uploads.id')
      .whereRef('resumable_uploads.id', '=', 'record_id').where('resumable_uploads.expires_at', '>', sql<Date>`now()`)))]),
  ]).$castTo<boolean>().as('isGone')
}

/** Returns the results of each of the keys, in the same order. Deletes those that have expired. */
export async function findResults (db: Database, keys: readonly string[]): Promise<StoredResult[][]> {
  const rows = await db.selectFrom('idempotency_keys')
    .select(['key', 'part', 'fingerprint', 'kind', 'record_id as recordId', 'result', 'row_version as rowVersion'])
    .select(sql<boolean>`expires_at <= now()`.as('isExpired'))
    .select(isGone)
    .where('key', '=', sql<string>`any(${keys}::uuid[])`)
    .execute()
  const expired = rows.filter(({ isExpired }) => isExpired).map(({ key }) => key)
  if (expired.length > 0) {
    await deleteExpired(db, (query) => query.where('key', '=', sql<string>`any(${expired}::uuid[])`))
  }
  const byKey = Map.groupBy(rows.filter(({ isExpired }) => !isExpired), ({ key }) => key)
  return keys.map((key) => byKey.get(key) ?? [])
}

/** Deletes at most `limit` results that have expired. Returns the number of deleted results. */
export async function deleteExpiredResults (db: Database, limit: number): Promise<number> {
  return deleteExpired(db, (query) => query.orderBy('expires_at').limit(limit))
}

// Does not wait for rows that another transaction has locked, because other requests wait for this statement.
async function deleteExpired (db: Database, choose: (query: ExpiredResults) => ExpiredResults): Promise<number> {
  const { numDeletedRows } = await replanned(db)
    .deleteFrom('idempotency_keys').where(ctid, '=', ({ selectFrom }) =>
      anyOf(choose(selectFrom('idempotency_keys').select(ctid.as('ctid')).where('expires_at', '<=', sql<Date>`now()`))
        .forUpdate().skipLocked()))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

type ExpiredResults = SelectQueryBuilder<Tables, 'idempotency_keys', { ctid: string }>
