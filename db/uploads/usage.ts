import { sql } from 'kysely'
import { schemaOf } from '../driver/postgres.ts'
import type { Database } from '../tables/index.ts'

/** What the uploads of a user take. */
export interface UploadUsage { bytes: number, files: number }

/** What the uploads of a user may take. 0 is no limit. */
export interface UploadQuota { bytes: number, files: number }

/**
 * Returns what the uploads of each user take, in the same order, with what unfinished ones will take. It reads a
 * counter (`add_upload_usage`), and counts the uploads of a user who has none yet.
 */
export async function findUploadUsage (db: Database, userIds: readonly string[]): Promise<UploadUsage[]> {
  const rows = await db.selectFrom(
    sql<{ id: string, place: number }>`unnest(${userIds}::uuid[]) with ordinality`.as<'given'>(sql`given(id, place)`)
  )
    .leftJoin('upload_usage', 'upload_usage.user_id', 'given.id')
    .innerJoinLateral((lateral) => lateral
      .selectFrom((query) => query.selectFrom('uploads').select('uploads.size')
        .whereRef('uploads.user_id', '=', 'given.id')
        .unionAll(query.selectFrom('resumable_uploads').select('resumable_uploads.length as size')
          .whereRef('resumable_uploads.user_id', '=', 'given.id').where('upload_id', 'is', null)).as('taking'))
      .where('upload_usage.user_id', 'is', null)
      .select((query) => [query.fn.sum<string | null>('size').as('bytes'), query.fn.countAll<string>().as('files')])
      .as('counted'), (join) => join.onTrue())
    .select([
      sql<string>`coalesce(upload_usage.bytes, counted.bytes, 0)`.as('bytes'),
      sql<string>`coalesce(upload_usage.files, counted.files)`.as('files'),
    ])
    .orderBy('given.place')
    .execute()
  return rows.map(({ bytes, files }) => ({ bytes: Number(bytes), files: Number(files) }))
}

/** The condition of an insertion of uploads that sets their quota, for this statement only. It is always true. */
export const limitsUploads = ({ bytes, files }: UploadQuota) =>
  sql<boolean>`(select set_config('usher.upload_quota', ${`${bytes} ${files}`}, true)) is not null`

/**
 * Returns SQL of a subquery with one row, which locks the counter of a user until the statement ends. The trigger that
 * counts uploads would take the lock as well, but later.
 * @param user SQL of the id of the user
 */
export const lockingUsage = (db: Database, user: string) => sql`(
  select count(*) from (select from ${sql.id(schemaOf(db), 'upload_usage')} where user_id = ${sql.ref(user)} for update) as counter
) as locked`
