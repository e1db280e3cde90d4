import { sql } from 'kysely'
import { isUuid } from '../driver/postgres.ts'
import type { Database } from '../tables/index.ts'
import { findUploads, type UploadRow } from './uploads.ts'

/** How many uploads a search looks through. */
export const SEARCHED_UPLOADS = 5000

export interface SearchUploadsQuery {
  /** What the names contain, regardless of case. */
  q: string
  userId?: string | undefined
  limit: number
  /** The id of the last upload of the previous page. */
  after?: string | undefined
  /** Whether private uploads are left out. */
  onlyPublic: boolean
}

/** A page of uploads; `next` is the last id that it has looked at if there are more. */
export interface FoundUploads { rows: UploadRow[], next: string | null, isPart: boolean }

/**
 * Returns a page of uploads whose names contain a text, newest first, by keyset. It looks through a part of the list,
 * and the next page goes on where that part ends. `isPart` says whether the page has fewer uploads because of that.
 */
export async function searchUploads (
  db: Database, { q, userId, limit, after, onlyPublic }: SearchUploadsQuery
): Promise<FoundUploads> {
  if (userId !== undefined && !isUuid(userId)) return { rows: [], next: null, isPart: false }
  const { looked, last, found } = await db
    .with((cte) => cte('part').materialized(), (cte) => cte.selectFrom('uploads').select(['id', 'filename'])
      .where('user_id', 'is not', null)
      .where('user_id', 'not in', ({ selectFrom }) => selectFrom('deleted_users').select('user_id'))
      .$if(userId !== undefined, (query) => query.where('user_id', '=', userId!))
      .$if(onlyPublic, (query) => query.where('is_private', '=', false))
      .$if(after !== undefined, (query) => query.where('id', '<', after!))
      .orderBy('id', 'desc').limit(SEARCHED_UPLOADS))
    .with('found', (cte) => cte.selectFrom('part').select('id')
      .where(sql<boolean>`strpos(lower(filename), lower(${q})) > 0`).orderBy('id', 'desc').limit(limit + 1))
    .selectNoFrom([
      sql<number>`(select count(*)::integer from part)`.as('looked'),
      sql<string | null>`(select id from part order by id limit 1)`.as('last'),
      sql<string>`array_to_string(array(select id from found order by id desc), ',')`.as('found'),
    ]).executeTakeFirstOrThrow()
  const ids = found === '' ? [] : found.split(',')
  const shown = ids.slice(0, limit)
  // One that was deleted meanwhile is left out.
  const rows = (await findUploads(db, shown)).filter((row) => row !== undefined)
  if (ids.length > limit) return { rows, next: shown.at(-1)!, isPart: false }
  const isPart = looked === SEARCHED_UPLOADS
  return { rows, next: isPart ? last : null, isPart }
}
