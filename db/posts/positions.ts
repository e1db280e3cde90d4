import { sql } from 'kysely'
import type { Database } from '../tables/index.ts'

/** The end of the list of posts. */
export interface End {
  /** The position of the last post; 0 if there is none. */
  latest: string
  /**
   * The last position that the sequence assigned, also to posts that are deleted or not committed yet; 0 if there is
   * none.
   */
  given: string
  /** The current epoch. */
  epoch: number
}

/** Returns the last positions of posts, and the current epoch. */
export async function findEnd (db: Database): Promise<End> {
  return db.selectFrom(['posts_position_seq', 'current_epoch']).select((query) => [
    'current_epoch.epoch',
    sql<string>`coalesce(${query.selectFrom('posts').select('position').orderBy('position', 'desc').limit(1)}, 0)`
      .as('latest'),
    sql<string>`case when is_called then last_value else 0 end`.as('given'),
  ]).executeTakeFirstOrThrow()
}

/** Returns the epoch of the last post at or before a position (0 if there is none), and the current epoch. */
export async function findEpochs (db: Database, position: string): Promise<{ before: number, current: number }> {
  return db.selectFrom('current_epoch').select((query) => [
    sql<number>`coalesce(${query.selectFrom('posts').select('posts.epoch').where('position', '<=', position).orderBy('position', 'desc').limit(1)}, 0)`
      .as('before'),
    'current_epoch.epoch as current',
  ]).executeTakeFirstOrThrow()
}
