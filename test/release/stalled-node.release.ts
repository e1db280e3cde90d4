import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { createDatabase, testDatabaseUrl } from '../helpers/database.ts'
import type { Answer } from '../helpers/graphql.ts'
import { startNode } from '../helpers/node.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql } from '../helpers/sql.ts'
import { openSocket } from '../helpers/graphql.ts'
import { until } from '../helpers/until.ts'

const LEASE_MS = 100
const admin = { email: 'root@example.com', password: 'horse battery staple' }
const mutation = { query: 'mutation { createPost(input: { title: "A", content: "B" }) { id } }' }

t.test('4 a node that was paused rejects tokens of sessions that ended meanwhile', async (t) => {
  const url = await createDatabase(t)
  const cwd = t.testdir()
  const one = await createUsher(t, { databaseUrl: url, schema: 'usher', uploadsDir: `${cwd}/uploads`, admin })
  const sql = openSql(t, one)
  const proxy = await createProxy(t, url)
  const two = await startNode(t, {
    cwd,
    settings: {
      DATABASE_URL: proxy.url, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'silent',
    },
  })
  for (let round = 0; round < 5; round++) {
    const user = await one.createUser()
    const headers = { ...user.headers, 'content-type': 'application/json' }
    const read = () => two.fetch('/api/protected', { headers }).then(({ status }) => status)
    const write = () => two.fetch('/graphql', { method: 'POST', headers, body: JSON.stringify(mutation) })
      .then(async (response) => (await response.json() as Answer).errors?.[0]?.extensions.code)
    t.strictSame(await Promise.all(Array.from({ length: 8 }, read)), Array(8).fill(200))
    const socket = await (await openSocket(t, two)).init(user.headers)

    two.child.kill('SIGSTOP')
    t.equal((await one.inject('POST', '/api/auth/logout', { headers: user.headers })).statusCode, 204)
    // These requests are waiting when the node continues. It reads them before the notification of the database
    // arrives.
    proxy.delayReplies(100)
    const onSocket = Promise.race([socket.run(mutation.query), socket.closed])
    const waiting: Promise<unknown>[] = [...Array.from({ length: 8 }, read), ...Array.from({ length: 4 }, write)]
    await delay(2 * LEASE_MS)
    two.child.kill('SIGCONT')
    t.strictSame(
      await Promise.all(waiting), [...Array(8).fill(401), ...Array(4).fill('INVALID_TOKEN')], `round ${round}`
    )
    await onSocket
    proxy.delayReplies(0)
  }
  t.equal((await sql`select from posts`).length, 0, 'nothing was written')
})

t.test('1.10 a node does not take its own pause for an outage', async (t) => {
  const url = await createDatabase(t)
  const proxy = await createProxy(t, url)
  const node = await startNode(t, {
    cwd: t.testdir(),
    settings: {
      DATABASE_URL: proxy.url, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'silent',
    },
  })
  const read = () => node.fetch('/api/users').then(({ status }) => status)
  t.equal(await read(), 200)
  proxy.freeze()
  // Within this time the node sends heartbeats, which remain unanswered.
  await delay(100)
  node.child.kill('SIGSTOP')
  await delay(2000)
  const waiting = read()
  node.child.kill('SIGCONT')
  await delay(100)
  proxy.thaw()
  t.equal(await waiting, 200)
})

t.test('4 1.10 if the database responds after 350 ms, valid tokens are accepted, and those of ended sessions are rejected', async (t) => {
  const databaseUrl = await testDatabaseUrl()
  const proxy = await createProxy(t, databaseUrl)
  const one = await createUsher(t)
  const two = await createUsher(t, { ...one.options, databaseUrl: proxy.url, deadlines: {} })
  const user = await one.createUser()
  t.equal(await statusOf(two, user), 200)
  proxy.delayReplies(350)
  const statuses: Promise<number>[] = []
  for (let count = 0; count < 40; count++) {
    statuses.push(statusOf(two, user))
    await delay(50)
  }
  t.strictSame(await Promise.all(statuses), Array(40).fill(200))
  t.equal((await two.inject('GET', '/health/ready')).statusCode, 200)

  for (let round = 0; round < 3; round++) {
    const session = await one.login(user)
    t.equal(await statusOf(two, session), 200)
    t.equal((await one.inject('POST', '/api/auth/logout', { headers: session.headers })).statusCode, 204)
    await delay(LEASE_MS)
    t.equal(await statusOf(two, session), 401, 'although the notification has not arrived yet')
  }
})

t.test('2.5 a node that stalls while it deletes an admin blocks changes of other admins for a second at most', async (t) => {
  const databaseUrl = await testDatabaseUrl()
  const proxy = await createProxy(t, databaseUrl)
  const one = await createUsher(t, { databaseUrl: `${databaseUrl}?statement_timeout=5000` })
  const two = await createUsher(t, { ...one.options, databaseUrl: proxy.url, deadlines: {} })
  const [gone, other] = [await one.createUser({ role: 'admin' }), await one.createUser({ role: 'admin' })]
  const sql = openSql(t, one)
  const isWaiting = async () => (await sql`
    select from pg_stat_activity where query ilike '%for no key update%' and query like ${`%${one.options.schema}%`} and wait_event_type = 'Lock'`).length > 0

  // Another transaction blocks the deletion until the connections of the node are frozen, so that the node cannot
  // complete it.
  const lock = await sql.reserve()
  await lock`begin`
  await lock`select from users where id = ${gone.id} for no key update`
  const deletion = two.inject('DELETE', `/api/users/${gone.id}`, { headers: one.admin.headers })
  await until('the deletion waits', isWaiting)
  proxy.freeze()
  await lock`rollback`
  lock.release()
  await until('the deletion has the locks', async () => !await isWaiting())

  const change = await one.inject('PUT', `/api/users/${other.id}`, {
    headers: one.admin.headers, payload: { name: 'Other', email: other.email, role: 'user' },
  })
  t.equal(change.statusCode, 200, 'not 503, after five seconds')
  t.equal((await deletion).statusCode, 503)
  t.equal((await one.inject('GET', `/api/users/${gone.id}`)).statusCode, 200, 'it was not deleted')
})

async function statusOf ({ inject }: TestUsher, { headers }: { headers: Record<string, string> }): Promise<number> {
  return (await inject('GET', '/api/protected', { headers })).statusCode
}
