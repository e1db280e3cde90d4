import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import postgres from 'postgres'
import t from 'tap'
import { spawnCommand } from '../helpers/command.ts'
import { startCheckedLoad } from '../helpers/checked-load.ts'
import { startDatabase } from '../helpers/database.ts'
import { spawnNode, startNode, type ServingNode } from '../helpers/node.ts'
import { startPgbouncer } from '../helpers/pgbouncer.ts'
import { openSql } from '../helpers/sql.ts'
import { subscribe } from '../helpers/subscriber.ts'
import { startTraffic } from '../helpers/traffic.ts'
import { until } from '../helpers/until.ts'
import { findFaults, noFaults } from '../helpers/writes.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const REFUSAL =
  'NOTIFICATIONS_URL must lead to the database itself: no notification arrived. A pooler in transaction mode delivers none\n'

const { url: NOTIFICATIONS_URL, dataDir: cwd } = await startDatabase(t)
const pooled = await startPgbouncer(t, join(cwd, 'pgbouncer'), NOTIFICATIONS_URL)
const DATABASE_URL = pooled
// How long the load with checked answers lasts at least.
const SECONDS = Number(process.env['POOLER_SECONDS'] ?? 30)
const STATUSES = 25
const KINDS = 12
// The limit of a file does not know how long the load lasts.
const LEFT_SECONDS = 900
t.setTimeout((SECONDS + LEFT_SECONDS) * 1000)
const settings = { ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'silent' }

t.test('4 two nodes through PgBouncer in transaction mode', async (t) => {
  const sql = openSql(t, { options: { databaseUrl: NOTIFICATIONS_URL, schema: 'usher' } })
  const options = { cwd, settings: { ...settings, DATABASE_URL, NOTIFICATIONS_URL } }
  // Both nodes start at the same time and try to migrate.
  const [one, two] = await Promise.all([startNode(t, options), startNode(t, options)])
  const { headers } = await one.login(admin)

  t.test('timeouts that PgBouncer does not forward are set in its configuration', async (t) => {
    const client = postgres(DATABASE_URL, { max: 1, fetch_types: false })
    t.teardown(() => client.end())
    const show = async (name: string) => (await client.unsafe(`show ${name}`))[0]![name]
    t.strictSame([await show('statement_timeout'), await show('idle_in_transaction_session_timeout')], ['10s', '3s'])
  })

  t.test('2 a user is created on one node, changed on the other, and deleted', async (t) => {
    const user = { name: 'Ada', email: 'ada@example.com' }
    const created = await one.fetch('/api/users', { method: 'POST', headers, body: JSON.stringify(user) })
    t.equal(created.status, 201)
    const path = created.headers.get('location')!
    t.match(await (await two.fetch(path)).json(), user)
    t.equal((await two.fetch(path, {
      method: 'PUT', headers, body: JSON.stringify({ ...user, name: 'Ada Lovelace' }),
    })).status, 200)
    t.match(await (await one.fetch(path)).json(), { name: 'Ada Lovelace' })
    t.equal(
      (await one.fetch(path, { method: 'DELETE', headers: { authorization: headers.authorization! } })).status, 204
    )
    t.equal((await two.fetch(path)).status, 404)
  })

  t.test('7.7 posts reach the subscribers of both nodes', async (t) => {
    const sockets = [await subscribe(t, one), await subscribe(t, two)]
    for (const node of [one, two]) {
      const title = crypto.randomUUID()
      await node.fetch('/graphql', {
        method: 'POST',
        headers,
        body:
          JSON.stringify({ query: `mutation { createPost(input: { title: "${title}", content: "Words" }) { id } }` }),
      })
      for (const socket of sockets) t.match(await socket.next(), { payload: { data: { postCreated: { title } } } })
    }
  })

  t.test('4 a session that ended on one node is rejected by the other', async (t) => {
    const session = await one.login(admin)
    const status = async () => (await two.fetch('/api/protected', { headers: session.headers })).status
    t.equal(await status(), 200)
    t.equal((await one.fetch('/api/auth/logout', { method: 'POST', headers: { cookie: session.cookie } })).status, 204)
    await until('refused', async () => await status() === 401)
  })

  t.test('requests succeed with more clients than connections', async (t) => {
    const traffic = [one, two].map(({ url }) => startTraffic({ url, headers }))
    await Promise.all(traffic.map(({ flow }) => flow(150)))
    for (const { stop, answers, writes } of traffic) {
      await stop()
      t.strictSame(Object.keys(answers).sort(), ['200', '201'])
      t.comment(answers)
      t.strictSame({ ...await findFaults(sql, writes), unasked: [] }, noFaults)
    }
  })
})

t.test('8 under load on three nodes each answer is the one to its request, and no status fails', async (t) => {
  const urls = [pooled, pooled, `${pooled}?prepare=false`]
  const nodes: ServingNode[] = []
  for (const url of urls) {
    nodes.push(await startNode(t, { cwd, settings: { ...settings, DATABASE_URL: url, NOTIFICATIONS_URL } }))
  }
  let authorization = ''
  // Three nodes that have just started keep a machine busy.
  await until('the admin can log in', async () => {
    authorization = await nodes[0]!.login(admin).then(({ token }) => `Bearer ${token}`, () => '')
    return authorization
  })
  const { user } =
    await (await nodes[0]!.fetch('/api/protected', { headers: { authorization } })).json() as { user: { id: string } }
  const load = startCheckedLoad(nodes, { authorization, adminId: user.id })
  const over = delay(SECONDS * 1000)
  const failed = []
  for (let count = 0; count < STATUSES; count++) {
    const { stdout, code } = await spawnCommand(
      ['status', '--json'], { ...settings, DATA_DIR: cwd, DATABASE_URL: pooled, NOTIFICATIONS_URL }, cwd
    )
    if (code !== 0) failed.push(stdout)
  }
  await over
  await load.stop()
  t.comment({ refused: load.refused, ...load.right })
  t.strictSame(load.wrong, [])
  t.strictSame(load.lost, [])
  t.notMatch(
    await readFile(join(cwd, 'pgbouncer', 'log'), 'utf8'), 'not linked', 'PgBouncer had no answer without a client'
  )
  t.strictSame(failed, [])
  t.equal(Object.keys(load.right).length, KINDS, 'every kind of request was answered')
})

t.test('8 if notifications would not arrive, the node does not start and says why', async (t) => {
  const wrong: Record<string, string>[] = [{}, { NOTIFICATIONS_URL: pooled }]
  const nodes = wrong.map((rest) => spawnNode(t, { cwd, settings: { ...settings, DATABASE_URL, ...rest } }))
  t.strictSame(await Promise.all(nodes.map(({ ended }) => ended)), [1, 1])
  t.strictSame(nodes.map(({ stderr }) => stderr), [REFUSAL, REFUSAL])
})

t.test('8 in session mode notifications arrive', async (t) => {
  const url = await startPgbouncer(t, join(cwd, 'pgbouncer-session'), NOTIFICATIONS_URL, 'session')
  const node = await startNode(t, { cwd, settings: { ...settings, DATABASE_URL: url } })
  t.equal((await node.fetch('/health/ready')).status, 200)
})
