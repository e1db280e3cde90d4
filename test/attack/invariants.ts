import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { World } from './actors.ts'
import type { Acknowledged, Kind } from './findings.ts'
import type { Stage } from './stage.ts'

/** A violated invariant. */
export interface Breach { readonly kind: Kind, readonly detail: string }

const SETTLE_MS = 15_000
const POLL_MS = 250
const EXAMPLES = 5

/**
 * Opens the checks of the database that hold at every moment, also during the attack. Returns a function that compares
 * the database with its state at the time of this call.
 */
export async function openInvariants ({ sql }: Stage, world: World): Promise<() => Promise<Breach[]>> {
  const accounts = [world.admin, world.decoy, ...world.members, ...world.disposableAdmins].map(({ id }) => id)
  const admins = [world.admin, world.decoy, ...world.disposableAdmins].map(({ id }) => id)

  // Each value is one text, so any difference shows an unauthorized change.
  async function readProtected (): Promise<Record<string, string>> {
    const [row] = await sql<[Record<string, string>]>`
      select
        (select string_agg(users::text, chr(10) order by id) from users where id = any(${world.victims}::uuid[])) as "the records of victims",
        (select string_agg(posts::text, chr(10) order by id) from posts where author_id = any(${world.victims}::uuid[])) as "the posts of victims",
        (select string_agg(uploads::text, chr(10) order by id) from uploads where user_id = any(${world.victims}::uuid[])) as "the uploads of victims",
        (select string_agg(id::text, chr(10) order by id) from sessions where id = any(${world.victimSessions}::uuid[])) as "the sessions of victims",
        (select string_agg(id || role || password_hash, chr(10) order by id) from users where id = any(${accounts}::uuid[])) as "roles and passwords"`
    return row
  }

  async function findForbidden (): Promise<{ what: string, value: string }[]> {
    return sql<{ what: string, value: string }[]>`
      select 'user' as what, name || ' ' || email as value from users where name like 'deny-%' or email like 'deny-%'
      union all select 'post', title from posts where title like 'deny-%'
      union all select 'upload', description from uploads where description like 'deny-%'
      union all select 'admin', name || ' ' || email from users where role = 'admin' and name not like 'may-admin-%' and id <> all(${admins}::uuid[])
      limit 100`
  }

  const before = await readProtected()
  return async () => {
    const after = await readProtected()
    const changed = Object.keys(before).filter((what) => before[what] !== after[what])
    return [
      ...changed.map(
        (what) => ({ kind: 'authorization' as const, detail: `${what} were changed by someone who may not` })
      ),
      ...(await findForbidden()).map(({ what, value }) =>
        ({ kind: 'authorization' as const, detail: `forbidden, but in the database: ${what} ${value}` })),
    ]
  }
}

/** Checks that everything the node has acknowledged is in the database. */
export async function checkAcknowledged (
  { sql }: Stage, { users, posts, uploads, endedSessions }: Acknowledged
): Promise<Breach[]> {
  const lost = async (
    what: string, table: 'users' | 'posts' | 'uploads', ids: readonly string[]
  ): Promise<Breach[]> => {
    const missing =
      await sql`select id from unnest(${ids as string[]}::uuid[]) id where not exists (select from ${sql(table)} known where known.id = id.id)`
    return missing.slice(0, EXAMPLES).map(({ id }) => ({
      kind: 'lost-write' as const, detail: `${what} ${id} was acknowledged and is gone (one of ${missing.length})`,
    }))
  }
  const alive = await sql`select id from sessions where id = any(${endedSessions}::uuid[])`
  return [
    ...await lost('user', 'users', users),
    ...await lost('post', 'posts', posts),
    ...await lost('upload', 'uploads', uploads),
    ...alive.map(({ id }) => ({ kind: 'lost-write' as const, detail: `session ${id} was ended and lives` })),
  ]
}

/**
 * Checks that the attack has left nothing behind when all its connections are closed. The node gets some time to clean
 * up.
 */
export async function checkLeftovers (stage: Stage, openFilesBefore: number): Promise<Breach[]> {
  const deadline = performance.now() + SETTLE_MS
  for (;;) {
    const found = await findLeftovers(stage, openFilesBefore)
    if (found.length === 0 || performance.now() > deadline) return found.map((detail) => ({ kind: 'leftover', detail }))
    await delay(POLL_MS)
  }
}

const FILES_OF_SLACK = 20

async function findLeftovers ({ sql, folder, node }: Stage, openFilesBefore: number): Promise<string[]> {
  const list = async (name: string) => (await readdir(join(folder, 'uploads', name))).sort()
  const [temporary, files] = [await list('tmp'), await list('files')]
  const records = await sql<{ id: string, ownerless: boolean }[]>`select id, user_id is null as ownerless from uploads`
  const recorded = new Set(records.map(({ id }) => id))
  const stored = new Set(files)
  const [activity] = await sql<[{ idle: number, waiting: number, undead: number }]>`
    select
      (select count(*)::int from pg_stat_activity where state like 'idle in transaction%' and pid <> pg_backend_pid()) as idle,
      (select count(*)::int from pg_stat_activity where wait_event_type = 'Lock') as waiting,
      (select count(*)::int from sessions join ended_sessions using (id)) as undead`
  const openFiles = await node.openFiles()
  const count = (number: number, what: string) => number > 0 ? [`${number} ${what}`] : []
  return [
    ...count(temporary.length, 'temporary files of uploads'),
    ...count(files.filter((id) => !recorded.has(id)).length, 'files without a record'),
    ...count(records.filter(({ id }) => !stored.has(id)).length, 'records without a file'),
    ...count(records.filter(({ ownerless }) => ownerless).length, 'uploads of deleted users'),
    ...count(activity.idle, 'connections idle in a transaction'),
    ...count(activity.waiting, 'connections waiting for a lock'),
    ...count(activity.undead, 'sessions that have ended and live'),
    ...openFiles > openFilesBefore + FILES_OF_SLACK ? [`${openFiles} open files, ${openFilesBefore} before`] : [],
  ]
}
