import { sql } from 'kysely'
import { permits, type Match } from '../../schema/http/entity-tag.ts'
import { PreconditionFailed } from '../../schema/http/errors.ts'
import { UserInUse, UserNotFound } from '../../schema/users/users.ts'
import { insertAuditEntries, type NewAuditEntry } from '../audit/audit.ts'
import { blankEntryEvents } from '../audit/events.ts'
import { anyOf, isUuid, violatesForeignKey } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import type { Confirmer } from '../driver/write-in-time.ts'
import { deleteSessionsOf } from '../access/ended-sessions.ts'
import { whileLocked } from './locked-users.ts'
import { endMembershipsOf } from '../organizations/owners.ts'
import { deleteMailsOf } from '../outbox/mails.ts'
import { actorValue, storeUserEvent, withEvents } from '../outbox/store.ts'
import { postData } from '../posts/change-posts.ts'
import type { Database } from '../tables/index.ts'
import { uploadData } from '../uploads/uploads.ts'

// The number of users that one step works on. Most users have so few rows that one step is enough for many of them.
const MAX_USERS_PER_STEP = 100

/**
 * Deletes a user and ends their sessions and memberships. Returns the ids of these. From the commit on, the user's
 * posts and uploads are invisible; `purgeDeletedUsers` removes them. Throws `UserNotFound`, `LastAdmin`, `LastOwner` or
 * `PreconditionFailed`, and `UserInUse` if a foreign key of the host forbids it, perhaps only at the commit.
 * @param note the entry of the account log
 * @param confirmer who deletes the user, and is asked before the commit
 * @param options.beforeDelete runs in the same transaction, before the deletion
 * @param options.match the versions that the user may have
 */
export async function deleteUser (
  db: Database, id: string, note: NewAuditEntry, confirmer: Confirmer,
  { beforeDelete, match }: { beforeDelete?: ((trx: Database) => Promise<void>) | undefined, match?: Match } = {}
): Promise<string[]> {
  if (!isUuid(id)) throw new UserNotFound()
  try {
    return await whileLocked(db, id, async (trx) => {
      if (Array.isArray(match)) await requireVersion(trx, id, match)
      await beforeDelete?.(trx)
      const { actorId } = note
      const memberships = await endMembershipsOf(trx, id, actorId)
      const ended = [...memberships, ...await deleteSessionsOf(trx, id, actorId)]
      await trx.deleteFrom('users').where('id', '=', id).execute()
      await storeUserEvent(trx, 'user.deleted', id, actorId)
      await insertAuditEntries(trx, [note])
      // Last in the transaction, because it may have waited for locks (contract 1.12).
      await confirmer.confirm()
      return ended
    })
  } catch (error) {
    throw violatesForeignKey(error) ? new UserInUse() : error
  }
}

// The transaction has locked the row, so its version remains until the deletion.
async function requireVersion (trx: Database, id: string, match: Match): Promise<void> {
  const { version } = await trx.selectFrom('users').select('row_version as version')
    .where('id', '=', id).executeTakeFirstOrThrow()
  if (!permits(match, version)) throw new PreconditionFailed()
}

/** The result of one step. */
export interface PurgeStep {
  /** Whether there may be more to delete. */
  more: boolean
  /** The number of uploads that lost their owner, whose files can be removed now. */
  uploads: number
}

/**
 * Removes some of the remaining data of deleted users: it deletes at most `limit` posts, removes the owner of at most
 * `limit` uploads, blanks address and user agent of at most `limit` audit entries and of as many of their events, and
 * deletes mails that wait. It commits its progress, so that any node can continue, and skips users that another node is
 * working on.
 */
export async function purgeDeletedUsers (db: Database, limit: number): Promise<PurgeStep> {
  return db.transaction().execute(async (trx) => {
    const queued = await trx.selectFrom('deleted_users').select('user_id as id')
      .orderBy('user_id').limit(MAX_USERS_PER_STEP).forUpdate().skipLocked().execute()
    if (queued.length === 0) return { more: false, uploads: 0 }
    const ids = queued.map(({ id }) => id)
    const posts = await deletePosts(trx, ids, limit)
    const uploads = await disownUploads(trx, ids, limit)
    const entries = await blankAuditEntries(trx, ids, limit)
    const events = await blankEntryEvents(trx, ids, limit)
    const mails = await deleteMailsOf(trx, ids, limit)
    const done = Math.max(posts, uploads, entries, events, mails) < limit
    if (done) {
      await trx.deleteFrom('recognised_networks').where('user_id', '=', among(ids)).execute()
      await trx.deleteFrom('deleted_users').where('user_id', '=', among(ids)).execute()
    }
    return { more: !done || queued.length === MAX_USERS_PER_STEP, uploads }
  })
}

// Starts with the newest posts, because lists start there. Stores the position of the last deleted post, because a
// later step would otherwise visit the index entries of all posts that are already deleted.
async function deletePosts (trx: Database, ids: readonly string[], limit: number): Promise<number> {
  const statement = replanned(trx)
    .with('old', (cte) => cte.selectFrom('deleted_users').where('user_id', '=', among(ids))
      .innerJoinLateral((lateral) => lateral.selectFrom('posts').select('id')
        .whereRef('author_id', '=', 'user_id').whereRef('position', '<', 'posts_below')
        .orderBy('position', 'desc').limit(limit).as('post'), (join) => join.onTrue())
      .select('post.id').limit(limit))
    .with('gone', (cte) => cte.deleteFrom('posts')
      .where('id', '=', ({ selectFrom }) => anyOf(selectFrom('old').select('id')))
      .returning(['id', 'author_id', 'title', 'position']))
    .with('lowest', (cte) => cte.selectFrom('gone').groupBy('author_id')
      .select((query) => [
        'author_id', query.fn.min('position').as('position'), query.fn.countAll<number>().as('count'),
      ]))
  const rows = await withEvents(statement, trx, 'post.deleted', {
    from: 'gone', ...postData('gone', 'gone.author_id', actorValue(null)),
  })
    .updateTable('deleted_users').from('lowest').whereRef('user_id', '=', 'author_id').where('user_id', '=', among(ids))
    .set((query) => ({ posts_below: query.ref('lowest.position') }))
    .returning('lowest.count').execute()
  return sum(rows)
}

// `deleteOwnerlessUploads` later removes the files, each before its record.
async function disownUploads (trx: Database, ids: readonly string[], limit: number): Promise<number> {
  const statement = replanned(trx).with(
    'old', (cte) => cte.selectFrom('uploads').selectAll().where('user_id', '=', among(ids)).limit(limit).forUpdate()
  )
  const { numUpdatedRows } = await withEvents(statement, trx, 'upload.deleted', {
    from: 'old', ...uploadData('old', actorValue(null)),
  })
    .updateTable('uploads').where('id', '=', ({ selectFrom }) => anyOf(selectFrom('old').select('id')))
    .set({ user_id: null }).executeTakeFirstOrThrow()
  return Number(numUpdatedRows)
}

/**
 * Blanks the addresses and user agents in the entries of deleted users, since this personal data is no longer needed.
 * The action, the actor and the time remain, with ids that no longer lead to a name. So it is with the entry of a
 * deletion by the user. Entries about what others did to the account remain complete, because they are data about those
 * others.
 */
async function blankAuditEntries (trx: Database, ids: readonly string[], limit: number): Promise<number> {
  const rows = await replanned(trx)
    .with('old', (cte) => cte.selectFrom('deleted_users').where('deleted_users.user_id', '=', among(ids))
      .innerJoinLateral((lateral) => lateral.selectFrom('audit').select('id')
        .whereRef('audit.user_id', '=', 'deleted_users.user_id').whereRef('id', '<', 'audit_below')
        .orderBy('id', 'desc').limit(limit).as('entry'), (join) => join.onTrue())
      .select(['deleted_users.user_id', 'entry.id']).limit(limit))
    .with('blanked', (cte) => cte.updateTable('audit')
      .where('id', '=', ({ selectFrom }) => anyOf(selectFrom('old').select('id')))
      // Without an actor, an operator or the host has deleted the user: the entry says who did, and nothing about the
      // user.
      .where(({ or, and, eb }) => or([
        eb('actor_id', '=', eb.ref('audit.user_id')),
        and([eb('actor_id', 'is', null), eb('action', '<>', 'user.delete')]),
      ]))
      .set({ address: '', user_agent: '' }))
    .with('lowest', (cte) => cte.selectFrom('old').groupBy('user_id')
      .select((query) => [
        'user_id', sql<string>`(array_agg(id order by id))[1]`.as('id'), query.fn.countAll<number>().as('count'),
      ]))
    .updateTable('deleted_users').from('lowest').whereRef('deleted_users.user_id', '=', 'lowest.user_id')
    .where('deleted_users.user_id', '=', among(ids))
    .set((query) => ({ audit_below: query.ref('lowest.id') }))
    .returning('lowest.count').execute()
  return sum(rows)
}

const among = (ids: readonly string[]) => sql<string>`any(${ids}::uuid[])`

const sum = (rows: readonly { count: number }[]) => rows.reduce((total, { count }) => total + Number(count), 0)
