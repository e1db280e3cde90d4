import t from 'tap'
import { startNode } from '../helpers/node.ts'
import { startReplicas } from '../helpers/replicas.ts'
import { openSql } from '../helpers/sql.ts'
import { subscribe } from '../helpers/subscriber.ts'
import { startTraffic } from '../helpers/traffic.ts'
import { until } from '../helpers/until.ts'
import { findFaults, noFaults } from '../helpers/writes.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }

t.test('1.10 when the database fails over under load, the nodes continue with the standby, and nothing is lost', async (t) => {
  // tap removes the folder before the teardowns run, unless a teardown was added first.
  t.teardown(() => {})
  const cwd = t.testdir()
  const replicas = await startReplicas(t, cwd)
  const settings = { ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'silent' }
  const one = await startNode(t, { cwd, settings: { ...settings, DATABASE_URL: replicas.url } })
  const two = await startNode(t, { cwd, settings: { ...settings, DATABASE_URL: replicas.reversed } })
  const { headers } = await one.login(admin)
  const ended = await one.login(admin)
  const subscribers = [await subscribe(t, one), await subscribe(t, two)]

  const traffic = [one, two].map(({ url }) => startTraffic({ url, headers }, 10))
  await Promise.all(traffic.map(({ flow }) => flow(100)))
  t.equal((await two.fetch('/api/auth/logout', { method: 'POST', headers: { cookie: ended.cookie } })).status, 204)

  const killed = performance.now()
  replicas.killPrimary()
  const create = async () => (await one.fetch('/api/users', {
    method: 'POST', headers, body: JSON.stringify({ name: 'First', email: `${crypto.randomUUID()}@example.net` }),
  })).status
  await until('it is missed', async () => await create() === 503)
  const [missed, promoted] = [performance.now() - killed, performance.now()]
  await replicas.promote()
  const done = performance.now() - promoted
  await until('writes go on', async () => await create() === 201)
  const now = performance.now()
  t.comment(`missed ${Math.round(missed)} ms after the kill; the promotion took ${Math.round(done)} ms; the first write, ${Math.round(now - promoted)} ms after its beginning, ${Math.round(now - killed)} ms after the kill`)
  await Promise.all(traffic.map(({ flow }) => flow(100)))

  const sql = openSql(t, { options: { databaseUrl: replicas.standbyUrl, schema: 'usher' } })
  for (const { stop, answers } of traffic) {
    await stop()
    t.comment(answers)
    t.strictSame(
      Object.keys(answers).filter((answer) => !['200', '201', '503', 'DATABASE_UNAVAILABLE'].includes(answer)), []
    )
  }
  t.strictSame(await findFaults(sql, traffic.flatMap(({ writes }) => writes)), noFaults)

  for (const node of [one, two]) {
    t.equal((await node.fetch('/api/protected', { headers: ended.headers })).status, 401, 'what had ended stays so')
  }
  for (const node of [one, two]) {
    const title = crypto.randomUUID()
    await node.fetch('/graphql', {
      method: 'POST',
      headers,
      body: JSON.stringify({ query: `mutation { createPost(input: { title: "${title}", content: "Words" }) { id } }` }),
    })
    for (const subscriber of subscribers) {
      await until('it is told', async () => JSON.stringify(await subscriber.next()).includes(title))
    }
  }
})
