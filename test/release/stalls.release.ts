import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from 'postgres'
import t from 'tap'
import { stopBackends } from '../helpers/backends.ts'
import { startDatabase } from '../helpers/database.ts'
import { startNode } from '../helpers/node.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql } from '../helpers/sql.ts'
import { SteadyWriter, type Acknowledged } from '../helpers/steady-writer.ts'

// For a full run of ten minutes, set STALL_SECONDS=600.
const SECONDS = Number(process.env.STALL_SECONDS ?? 60)
const WRITERS = 48
const LONGEST_STALL_MS = 3000
const admin = { email: 'root@example.com', password: 'horse battery staple' }

t.setTimeout((SECONDS + 120) * 1000)

t.test('1.11 acknowledged writes survive stalls of rows, backends and the network to the database', async (t) => {
  const { url, dataDir: cwd } = await startDatabase(t)
  const proxy = await createProxy(t, url)
  const sql = openSql(t, { options: { databaseUrl: url, schema: 'usher' } })
  const settings = {
    DATABASE_URL: proxy.url, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'error',
  }
  const node = await startNode(t, { cwd, settings })
  const { headers } = await node.login(admin)

  const stall = {
    rows: (milliseconds: number) => lockRows(sql, milliseconds),
    backends: (milliseconds: number) => stopBackends(sql, 3, () => delay(milliseconds)),

    async network (milliseconds: number) {
      proxy.freeze()
      await delay(milliseconds)
      proxy.thaw()
    },
  }

  const writers = Array.from(
    { length: WRITERS }, (_, index) => new SteadyWriter({ url: node.url, headers, index, logsIn: index < 2 })
  )
  const written = Promise.all(writers.map((writer) => writer.run()))
  const stalls = { rows: 0, backends: 0, network: 0 }
  const end = performance.now() + SECONDS * 1000
  while (performance.now() < end) {
    await delay(Math.random() * 1000)
    const name = (['rows', 'backends', 'network'] as const)[Math.floor(Math.random() * 3)]!
    await stall[name](Math.random() * LONGEST_STALL_MS)
    stalls[name]++
  }
  for (const writer of writers) writer.stop()
  await written

  const all = writers.map(({ acknowledged }) => acknowledged)
  const count = (of: (acknowledged: Acknowledged) => { size: number }) =>
    all.reduce((sum, acknowledged) => sum + of(acknowledged).size, 0)
  t.comment(
    `${JSON.stringify(stalls)}; users ${count(({ users }) => users)}, deleted ${count(({ deleted }) => deleted)}, ` +
      `posts ${count(({ posts }) => posts)}, ended sessions ${count(({ ended }) => ended)}, ` +
      `refused or undecided ${writers.reduce((sum, { failures }) => sum + failures, 0)}`
  )
  t.ok(count(({ users }) => users) > 0 && count(({ ended }) => ended) > 0)

  const users = new Map((await sql`select id, name from users`).map(({ id, name }) => [id, name]))
  const posts = new Set((await sql`select id from posts`).map(({ id }) => id))
  const sessions = new Set((await sql`select id from sessions`).map(({ id }) => id))
  t.strictSame(
    all.flatMap((acknowledged) => [...acknowledged.users].filter(([id, name]) => users.get(id) !== name)),
    [],
    'users are as acknowledged'
  )
  t.strictSame(all.flatMap(({ deleted }) => [...deleted].filter((id) => users.has(id))), [], 'deleted users are gone')
  t.strictSame(
    all.flatMap((acknowledged) => [...acknowledged.posts].filter((id) => !posts.has(id))), [], 'posts are there'
  )
  t.strictSame(all.flatMap(({ ended }) => [...ended].filter((id) => sessions.has(id))), [], 'ended sessions are gone')
  t.strictSame(
    [...await sql`select from pg_stat_activity where state like 'idle in transaction%'`],
    [],
    'no connection is inside a transaction'
  )
  t.notMatch(node.stdout, /inside a transaction|"level":60/)

  // The last stall may have made the database unavailable.
  while (!(await node.fetch('/health/ready')).ok) await delay(50)
  for (const cookie of all.flatMap(({ cookies }) => cookies).slice(-20)) {
    t.equal((await node.fetch('/api/auth/refresh', { method: 'POST', headers: { cookie } })).status, 401)
  }
})

/** Holds locks on the rows of some users for a while. */
async function lockRows (sql: Sql, milliseconds: number): Promise<void> {
  await sql.begin(async (sql) => {
    await sql`set local lock_timeout = 1000`
    await sql`select from users order by random() limit 10 for update`
    await delay(milliseconds)
    // The backend that holds a lock may be paused, or its user deleted, so this may fail.
  }).catch(() => {})
}
