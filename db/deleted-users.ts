import { sql } from 'kysely'
import type { Database } from './tables.ts'

// Users that one step works on. Most have so little that a step is enough for many of them.
const USERS_A_STEP = 100

/** What a step has done. */
export interface PurgeStep {
  /** Whether there may be more to delete. */
  more: boolean
  /** The number of uploads that lost their owner, whose files can be removed now. */
  uploads: number
}

/**
 * Deletes some of what deleted users have left: at most `limit` posts, `limit` uploads, which lose their owner, and the
 * places of `limit` audit entries. It commits its progress, so that any node can continue, and skips users whom another
 * node is working on.
 */
export async function purgeDeletedUsers (db: Database, limit: number): Promise<PurgeStep> {
  return db.transaction().execute(async (trx) => {
    const queued = await trx.selectFrom('deleted_users').select('user_id as id').orderBy('user_id').limit(USERS_A_STEP).forUpdate().skipLocked().execute()
    if (queued.length === 0) return { more: false, uploads: 0 }
    const ids = queued.map(({ id }) => id)
    const posts = await deletePosts(trx, ids, limit)
    const uploads = await disownUploads(trx, ids, limit)
    const entries = await blankAuditEntries(trx, ids, limit)
    const done = Math.max(posts, uploads, entries) < limit
    if (done) {
      await trx.deleteFrom('recognised_networks').where('user_id', '=', anyOf(ids)).execute()
      await trx.deleteFrom('deleted_users').where('user_id', '=', anyOf(ids)).execute()
    }
    return { more: !done || queued.length === USERS_A_STEP, uploads }
  })
}

// From the newest on, since lists begin there. The position of the last deleted one is stored, because a later step would
// otherwise visit the index entries of all that is deleted already.
async function deletePosts (trx: Database, ids: readonly string[], limit: number): Promise<number> {
  const rows = await trx
    .with('old', (cte) => cte.selectFrom('deleted_users').where('user_id', '=', anyOf(ids))
      .innerJoinLateral((lateral) => lateral.selectFrom('posts').select('id')
        .whereRef('author_id', '=', 'user_id').whereRef('position', '<', 'posts_below')
        .orderBy('position', 'desc').limit(limit).as('post'), (join) => join.onTrue())
      .select('post.id').limit(limit))
    .with('gone', (cte) => cte.deleteFrom('posts').where('id', 'in', ({ selectFrom }) => selectFrom('old').select('id')).returning(['author_id', 'position']))
    .with('lowest', (cte) => cte.selectFrom('gone').groupBy('author_id')
      .select((query) => ['author_id', query.fn.min('position').as('position'), query.fn.countAll<number>().as('count')]))
    .updateTable('deleted_users').from('lowest').whereRef('user_id', '=', 'author_id')
    .set((query) => ({ posts_below: query.ref('lowest.position') }))
    .returning('lowest.count').execute()
  return sum(rows)
}

// Their files are removed later, each before its record.
async function disownUploads (trx: Database, ids: readonly string[], limit: number): Promise<number> {
  const { numUpdatedRows } = await trx.updateTable('uploads').set({ user_id: null }).where('id', 'in', ({ selectFrom }) =>
    selectFrom('uploads').select('id').where('user_id', '=', anyOf(ids)).limit(limit)).executeTakeFirstOrThrow()
  return Number(numUpdatedRows)
}

/**
 * Forgets where deleted users were, and what with: personal data that has had its purpose. That something was done, by
 * whom and when, stays, with ids that no longer lead to a name. What others did to the account is about them and stays
 * too, and so does where the deletion itself came from, which shows who asked for it.
 */
async function blankAuditEntries (trx: Database, ids: readonly string[], limit: number): Promise<number> {
  const rows = await trx
    .with('old', (cte) => cte.selectFrom('deleted_users').where('deleted_users.user_id', '=', anyOf(ids))
      .innerJoinLateral((lateral) => lateral.selectFrom('audit').select('id')
        .whereRef('audit.user_id', '=', 'deleted_users.user_id').whereRef('id', '<', 'audit_below')
        .orderBy('id', 'desc').limit(limit).as('entry'), (join) => join.onTrue())
      .select(['deleted_users.user_id', 'entry.id']).limit(limit))
    .with('blanked', (cte) => cte.updateTable('audit').from('old').whereRef('audit.id', '=', 'old.id')
      .where('action', '<>', 'user.delete')
      .where(({ or, eb }) => or([eb('actor_id', '=', eb.ref('audit.user_id')), eb('actor_id', 'is', null)]))
      .set({ address: '', user_agent: '' }))
    .with('lowest', (cte) => cte.selectFrom('old').groupBy('user_id')
      .select((query) => ['user_id', sql<string>`(array_agg(id order by id))[1]`.as('id'), query.fn.countAll<number>().as('count')]))
    .updateTable('deleted_users').from('lowest').whereRef('deleted_users.user_id', '=', 'lowest.user_id')
    .set((query) => ({ audit_below: query.ref('lowest.id') }))
    .returning('lowest.count').execute()
  return sum(rows)
}

const anyOf = (ids: readonly string[]) => sql<string>`any(${ids}::uuid[])`

const sum = (rows: readonly { count: number }[]) => rows.reduce((total, { count }) => total + Number(count), 0)
