import { sql } from 'kysely'
import type { Database } from '../tables/index.ts'

/** What subscribers follow: new posts, or their changes and deletions as well. */
export type FollowedKind = 'created' | 'changed'

/** The end of what is followed. */
export interface End {
  /** The position of the last event; 0 if there is none. */
  latest: string
  /**
   * The last position that the sequence assigned, also to posts that are deleted or not committed yet; 0 if there is
   * none.
   */
  given: string
  /** The current epoch. */
  epoch: number
  /** The position up to which deletions are not known any more; 0 if all are. */
  forgotten: string
}

/** Returns the last positions of what is followed, and the current epoch. */
export async function findEnd (db: Database, kind: FollowedKind): Promise<End> {
  return db.selectFrom(['posts_position_seq', 'current_epoch']).select(({ selectFrom }) => [
    'current_epoch.epoch',
    sql<string>`coalesce(${lastEvent(db, kind).select('event.position')}, 0)`.as('latest'),
    sql<string>`case when is_called then last_value else 0 end`.as('given'),
    kind === 'created'
      ? sql<string>`0`.as('forgotten')
      : sql<string>`coalesce(${selectFrom('post_deletions').select('position').where('post_id', 'is', null)
        .orderBy('position', 'desc').limit(1)}, 0)`.as('forgotten'),
  ]).executeTakeFirstOrThrow()
}

/** Returns the epoch of the last event at or before a position (0 if there is none), and the current epoch. */
export async function findEpochs (
  db: Database, kind: FollowedKind, position: string
): Promise<{ before: number, current: number }> {
  return db.selectFrom('current_epoch').select([
    sql<number>`coalesce(${lastEvent(db, kind, position).select('event.epoch')}, 0)`.as('before'),
    'current_epoch.epoch as current',
  ]).executeTakeFirstOrThrow()
}

// The last event, at or before a position if one is given. Each part reads one entry of an index.
function lastEvent (db: Database, kind: FollowedKind, upTo?: string) {
  const created = db.selectFrom('posts').select(['position', 'epoch'])
    .$if(upTo !== undefined, (query) => query.where('position', '<=', upTo!)).orderBy('position', 'desc').limit(1)
  if (kind === 'created') return db.selectFrom(created.as('event'))
  const changed = db.selectFrom('posts')
    .select((query) => [
      query.ref('change_position').$notNull().as('position'), query.ref('change_epoch').$notNull().as('epoch'),
    ])
    .where('change_position', 'is not', null)
    .$if(upTo !== undefined, (query) => query.where('change_position', '<=', upTo!))
    .orderBy('change_position', 'desc').limit(1)
  const deleted = db.selectFrom('post_deletions').select(['position', 'epoch'])
    .$if(upTo !== undefined, (query) => query.where('position', '<=', upTo!)).orderBy('position', 'desc').limit(1)
  const events = db.selectFrom(created.as('created')).selectAll()
    .unionAll(db.selectFrom(changed.as('changed')).selectAll())
    .unionAll(db.selectFrom(deleted.as('deleted')).selectAll())
  return db.selectFrom(events.as('event')).orderBy('event.position', 'desc').limit(1)
}
