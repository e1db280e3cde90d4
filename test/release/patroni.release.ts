import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Follower, ways } from '../helpers/follower.ts'
import { startNode, type ServingNode } from '../helpers/node.ts'
import { startPatroni } from '../helpers/patroni.ts'
import { Posting } from '../helpers/posting.ts'
import { openSql } from '../helpers/sql.ts'
import { SteadyWriter } from '../helpers/steady-writer.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { until } from '../helpers/until.ts'
import { compareEvents, isExact, readPosts } from './faults/check-events.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
// 1 measures how long users wait, on a machine that has nothing else to do.
const { DEADLINE_FACTOR } = process.env
const PROBE_MS = 100
// What is acknowledged after the promotion of another member would be acknowledged in this time.
const SPLIT_MS = 5000
const READS = 20
const OUTCOMES = ['200', '201', '503']

t.setTimeout(0)

t.test('1.10 three members of PostgreSQL under Patroni, etcd and HAProxy, with the files of deploy/patroni', async (t) => {
  const cluster = await startPatroni(t)
  const cwd = temporaryFolder()
  const settings = {
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
    LOG_LEVEL: 'silent',
    ...DEADLINE_FACTOR !== undefined && { DEADLINE_FACTOR },
  }
  const replicas = cluster.members.map(({ url }) => url).join()
  const start = (more: Record<string, string>) =>
    startNode(t, { cwd, settings: { ...settings, DATABASE_URL: cluster.url, ...more } })
  const one = await start({ WORKERS: '2' })
  const two = await start({ REPLICA_URLS: replicas })
  // It knows the members only, and is not told which of them has the lease.
  const three = await start({ DATABASE_URL: cluster.direct })
  const nodes = [one, two]
  const { headers } = await one.login(admin)
  const { user: { id: userId } } =
    await (await one.fetch('/api/protected', { headers })).json() as { user: { id: string } }

  const probe = startProbe(one, headers)
  const posting = new Posting({ urls: nodes.map(({ url }) => url), headers, authorIds: [userId] })
  const apart = new Posting({ urls: [three.url], headers, authorIds: [userId] })
  const after = await posting.postUntilAcknowledged()
  const writers = nodes.map(({ url }, index) => new SteadyWriter({ url, headers, index, logsIn: index === 0 }))
  // The posts of others are deleted with their authors.
  const followers = Object.keys(ways).map((way) => new Follower({
    urls: nodes.map(({ url }) => url), way, authorId: userId, after, patience: Infinity,
  }))
  const working = [posting.run(2), apart.run(1), ...writers.map((writer) => writer.run())]
  const following = followers.map((follower, index) => follower.run(index))

  /** Checks that a fault is survived, and comments for how long writes failed. */
  async function survive (t: Test, what: string, fault: () => Promise<void>): Promise<void> {
    const session = await two.login(admin)
    const ended = await two.fetch('/api/auth/logout', { method: 'POST', headers: { cookie: session.cookie } })
    t.equal(ended.status, 204)
    await posting.more(20)
    probe.begin()
    await fault()
    await Promise.all([posting.more(20), apart.more(5)])
    await cluster.untilWhole()
    const { gap, slowest, statuses } = probe.end()
    t.comment(`${what}: no write was acknowledged for ${gap} ms; the slowest response took ${slowest} ms; ${JSON.stringify(statuses)}`)
    t.strictSame(Object.keys(statuses).filter((status) => !OUTCOMES.includes(status)), [])
    for (const node of nodes) {
      const status = async () => (await node.fetch('/api/protected', { headers: session.headers })).status
      t.equal(await whileUnavailable(status), 401, 'what had ended stays so')
    }
    const cursor = await posting.postUntilAcknowledged()
    await Promise.all(followers.map((follower) => follower.sees([cursor])))
    await readOwnWrites(t)
  }

  // What is acknowledged by one node is what the other one reads, also from standbys.
  async function readOwnWrites (t: Test): Promise<void> {
    const path = `/api/users/${userId}`
    const stale: unknown[] = []
    for (let number = 0; number < READS; number++) {
      const name = `Admin ${crypto.randomUUID()}`
      await whileUnavailable(async () =>
        (await one.fetch(path, { method: 'PATCH', headers, body: JSON.stringify({ name }) })).status)
      const read = await two.fetch(path, { headers })
      const shown = await read.json() as { name: string }
      if (read.status === 200 && shown.name !== name) stale.push([name, shown])
    }
    t.strictSame(stale, [], 'no read is stale')
  }

  await t.test('a switchover', async (t) => {
    const from = await cluster.leader()
    const to = await syncStandby()
    await survive(t, 'switchover', () => cluster.switchover(to))
    t.equal(await cluster.leader(), to)
    t.equal(await from.check('replica'), 200)
  })

  await t.test('kill -9 of the leader: another one takes over, and it comes back as a standby', async (t) => {
    const killed = await cluster.leader()
    await survive(t, 'kill -9', async () => {
      await killed.kill()
      await cluster.leader(killed)
      await posting.more(20)
      await killed.start()
    })
    t.equal(await killed.check('replica'), 200)
  })

  await t.test('the leader does not reach etcd, nor goes on: it gives up the lease', async (t) => {
    await cluster.configure({ failsafe_mode: false })
    const isolated = await cluster.leader()
    await survive(t, 'the lease lost', async () => {
      isolated.etcd.freeze()
      await until('it is none', async () => await isolated.check('primary') !== 200, 100)
      const [row] = await isolated.query('select pg_is_in_recovery() as standby').catch(() => [{ standby: true }])
      t.equal(row!['standby'], true, 'it has demoted itself')
      await cluster.leader(isolated)
      await posting.more(20)
      isolated.etcd.thaw()
    })
  })

  await t.test('an outage of etcd: with failsafe_mode writes go on', async (t) => {
    await survive(t, 'etcd stopped for 30 s, without failsafe_mode', async () => {
      const thaw = cluster.freezeEtcd()
      await delay(30_000)
      thaw()
    })
    await cluster.configure({ failsafe_mode: true })
    await cluster.untilWhole()
    // Each loop reads the configuration.
    await delay(11_000)
    const leader = await cluster.leader()
    await survive(t, 'etcd stopped for 30 s, with failsafe_mode', async () => {
      const thaw = cluster.freezeEtcd()
      await delay(30_000)
      await posting.more(20)
      thaw()
    })
    t.equal(await cluster.leader(), leader, 'it has stayed the leader')
  })

  await t.test('1.11 a split brain: what a former leader does not acknowledge is gone, and it acknowledges nothing', async (t) => {
    for (const what of ['patroni', 'machine'] as const) {
      const old = await cluster.leader()
      const logged = (await old.log()).length
      await survive(t, what === 'patroni' ? 'Patroni frozen' : 'the machine frozen', async () => {
        const thaw = await old.freeze(what)
        const next = await cluster.leader(old)
        if (what === 'patroni') {
          const [row] = await old.query('select pg_is_in_recovery() as standby')
          t.equal(row!['standby'], false, 'there are two primaries')
        }
        const id = crypto.randomUUID()
        const write = old.query(`insert into usher.replica_marks (id) values ('${id}')`)
          .then(() => 'acknowledged', () => 'failed')
        t.equal(await Promise.race([write, delay(SPLIT_MS, 'waits')]), 'waits')
        await posting.more(20)
        thaw()
        t.equal(await write, 'failed')
        await until('it follows', async () => await old.check('replica') === 200, 200)
        const [row] = await next.query(`select from usher.replica_marks where id = '${id}'`)
        t.notOk(row)
      })
      if (what === 'patroni') t.match((await old.log()).slice(logged), 'pg_rewind', 'what it alone had is gone')
    }
  })

  await probe.stop()
  for (const client of [posting, apart, ...writers]) client.stop()
  await Promise.all(working)
  const last = await posting.postUntilAcknowledged()
  await Promise.all(followers.map((follower) => follower.sees([last])))
  for (const follower of followers) follower.stop()
  await Promise.all(following)

  const sql = openSql(t, { options: { databaseUrl: cluster.url, schema: 'usher' } })
  const posts = await readPosts(sql)
  const expected = posts.slice(posts.findIndex(({ cursor }) => cursor === after))
    .filter(({ authorId }) => authorId === userId).map(({ cursor }) => cursor)
  const events = followers.map(({ seen, options: { way } }) => ({ way, ...compareEvents(seen, expected) }))
  t.strictSame(events.filter((result) => !isExact(result)), [], 'every subscriber got every post, once, in order')

  const ids = new Map(posts.map(({ title, id }) => [title, id]))
  t.equal(ids.size, posts.length, 'no post exists twice')
  const acknowledged = [posting, apart].flatMap(({ acknowledged }) => [...acknowledged])
  t.strictSame(acknowledged.filter(([title, { id }]) => ids.get(title) !== id), [], 'acknowledged posts exist')
  const all = writers.map(({ acknowledged }) => acknowledged)
  const users = new Map((await sql`select id, name from users`).map(({ id, name }) => [id, name]))
  const existing = new Set((await sql`select id from posts`).map(({ id }) => id))
  const sessions = new Set((await sql`select id from sessions`).map(({ id }) => id))
  t.strictSame(all.flatMap(({ users: own }) => [...own].filter(([id, name]) => users.get(id) !== name)), [],
    'users are as acknowledged')
  t.strictSame(probe.created.filter((id) => !users.has(id)), [])
  t.strictSame(all.flatMap(({ deleted }) => [...deleted].filter((id) => users.has(id))), [], 'deleted users are gone')
  t.strictSame(all.flatMap(({ posts }) => [...posts].filter((id) => !existing.has(id))), [])
  t.strictSame(all.flatMap(({ ended }) => [...ended].filter((id) => sessions.has(id))), [], 'ended sessions are gone')
  for (const cookie of all.flatMap(({ cookies }) => cookies).slice(-READS)) {
    t.equal((await two.fetch('/api/auth/refresh', { method: 'POST', headers: { cookie } })).status, 401)
  }
  const count = (of: (one: typeof all[number]) => { size: number }) => all.reduce((sum, one) => sum + of(one).size, 0)
  t.ok(count(({ ended }) => ended) > 0 && probe.created.length > 0)
  t.comment(`acknowledged: ${acknowledged.length} posts, ${probe.created.length} users of the probe, ${count(({ users }) => users)} other users, ${count(({ ended }) => ended)} ended sessions`)

  async function syncStandby () {
    const [row] = await (await cluster.leader()).query("select application_name as name from pg_stat_replication where sync_state = 'sync'")
    return cluster.members.find(({ name }) => name === row!['name'])!
  }
})

/** Repeats a request until its status is not 503. Returns that. */
async function whileUnavailable (send: () => Promise<number>): Promise<number> {
  for (; ; await delay(PROBE_MS)) {
    const status = await send()
    if (status !== 503) return status
  }
}

/** A client that creates users all the time, each in a request of its own that does not wait for the others. */
function startProbe (node: ServingNode, headers: Record<string, string>) {
  const created: string[] = []
  let [last, gap, slowest, statuses]: [number, number, number, Record<string, number>] = [0, 0, 0, {}]
  const sending = new Set<Promise<void>>()
  const note = () => {
    const now = performance.now()
    gap = Math.max(gap, now - last)
    last = now
  }

  async function send (): Promise<void> {
    const sent = performance.now()
    const body = JSON.stringify({ name: 'Probe', email: `${crypto.randomUUID()}@example.net` })
    const response = await node.fetch('/api/users', { method: 'POST', headers, body })
    const { id } = await response.json() as { id: string }
    if (response.status === 201) {
      created.push(id)
      note()
    }
    slowest = Math.max(slowest, performance.now() - sent)
    statuses[response.status] = (statuses[response.status] ?? 0) + 1
  }

  const timer = setInterval(() => {
    const request = send().finally(() => sending.delete(request))
    sending.add(request)
  }, PROBE_MS)
  return {
    created,
    begin () {
      last = performance.now()
      ;[gap, slowest, statuses] = [0, 0, {}]
    },
    end () {
      note()
      return { gap: Math.round(gap), slowest: Math.round(slowest), statuses }
    },
    async stop () {
      clearInterval(timer)
      await Promise.all(sending)
    },
  }
}
