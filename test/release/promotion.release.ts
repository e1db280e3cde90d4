import { join } from 'node:path'
import Fastify from 'fastify'
import t from 'tap'
import usher, { migrate } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { schema } from '../helpers/backup.ts'
import { runCommand } from '../helpers/command.ts'
import { slow } from '../helpers/deadlines.ts'
import { openEvents } from '../helpers/events.ts'
import { createPost, openSocket, post, titles } from '../helpers/graphql.ts'
import { startReplicas } from '../helpers/replicas.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const admin = { email: 'admin@example.com', password: 'horse battery staple' }

// PostgreSQL replicates sequences some numbers ahead. If more posts than this are lost, their positions are assigned
// again.
const LOST = 40

t.test('7.7 if a standby takes over without the latest posts, subscriptions that may miss posts fail with CURSOR_LOST', async (t) => {
  // Without an earlier teardown, tap would remove the folder before the servers that use it have stopped.
  t.teardown(() => {})
  const folder = t.testdir()
  const replicas = await startReplicas(t, folder, { synchronous: false })
  const usher = await createUsher(t, { databaseUrl: replicas.url, deadlines: {}, uploadsDir: folder })
  const { admin } = usher
  const create = async (title: string): Promise<string> => {
    const { data } = await post(
      usher, { query: `mutation { createPost(input: { title: "${title}", content: "" }) { cursor } }` }, admin
    )
    return data?.createPost.cursor
  }
  const subscribe = async (args = '') => {
    const socket = await (await openSocket(t, usher)).init()
    socket.start('posts', `subscription { postCreated${args} { title } }`)
    return socket
  }
  const events = (lastEventId: string) => openEvents(t, usher, {
    method: 'POST',
    body: JSON.stringify({ query: 'subscription { postCreated { title } }' }),
    headers: { 'last-event-id': lastEventId },
  })
  const lost = { extensions: { code: 'CURSOR_LOST' } }

  const replicated = await create('Replicated')
  await replicas.disconnectStandby()
  const running = await subscribe()
  await running.settle()
  const afterLost: string[] = []
  for (let count = 0; count < LOST; count++) afterLost.push(await create(`Lost ${count}`))
  t.equal((await titles(running, LOST)).length, LOST)
  replicas.killPrimary()
  await replicas.promote()
  let first: string | undefined
  await until('writes succeed again', async () => {
    first = await create('New 0')
    return first
  })

  t.match(await running.next(), { type: 'error', id: 'posts', payload: [lost] }, 'a running subscription fails')
  const early = await subscribe(`(after: "${afterLost.at(-1)}")`)
  t.match(await early.next(), { type: 'error', payload: [lost] }, 'a cursor after the last post fails')
  for (let count = 1; count < LOST + 40; count++) await createPost(usher, admin, `New ${count}`)
  const late = await subscribe(`(after: "${afterLost.at(-1)}")`)
  t.match(
    await late.next(), { type: 'error', payload: [lost] }, 'it also fails when its position has been assigned again'
  )
  t.match(await (await events(afterLost.at(-1)!)).answers(1), [{ data: null, errors: [lost] }])
  const query = `?${new URLSearchParams({ query: 'subscription { postCreated { title } }' })}`
  const { response } = await openEvents(t, usher, { query, headers: { 'last-event-id': afterLost.at(-1)! } })
  t.equal(response.status, 410, 'a browser does not reconnect')
  t.match(await response.json(), { data: null, errors: [lost] })

  const before = await subscribe(`(after: "${replicated}")`)
  t.same(
    await titles(before, LOST + 40),
    Array.from({ length: LOST + 40 }, (_, count) => `New ${count}`),
    'an earlier cursor still works'
  )
  const after = await subscribe(`(after: "${first}")`)
  t.same(await titles(after, 1), ['New 1'])
})

t.test('1.10 a start waits for a standby to be promoted, whether there are tables to create or not', async (t) => {
  t.teardown(() => {})
  const folder = t.testdir()
  const replicas = await startReplicas(t, folder, { synchronous: false })
  const lines: string[] = []
  const open = (databaseUrl: string, schema: string) => {
    const app = Fastify({
      forceCloseConnections: true,
      pluginTimeout: 0,
      logger: { level: 'warn', stream: { write: (line: string) => { lines.push(JSON.parse(line).msg) } } },
    })
    t.teardown(() => app.close())
    const options = { databaseUrl, schema, uploadsDir: folder, admin, poolSize: 2, deadlines: slow }
    const register = async () => { await app.register(usher, options) }
    const start = async () => { await app.register(usher, options).ready() }
    return { app, register, start }
  }
  await migrate({ databaseUrl: replicas.url, schema: 'present' })
  await replicas.disconnectStandby()
  // This one has registered everything, and listens next, when the primary is gone.
  const registered = open(replicas.url, 'present')
  await registered.register()
  replicas.killPrimary()

  const { standbyUrl, reversed } = replicas
  const hosts = [open(standbyUrl, 'present'), open(standbyUrl, 'absent'), open(reversed, 'named')]
  const starting = [...hosts.map(({ start }) => start()), registered.app.ready()]
  const waits = 'the database accepts no writes: the start waits for a failover to end'
  await until('all wait', () => lines.filter((line) => line === waits).length >= 4)
  await replicas.promote()
  await Promise.all(starting)
  for (const { app } of [...hosts, registered]) t.equal((await app.inject('/health/ready')).statusCode, 200)
})

t.test('1.10 a start with a server that stays a standby ends with a sentence', async (t) => {
  t.teardown(() => {})
  const folder = t.testdir()
  const { standbyUrl: databaseUrl } = await startReplicas(t, folder, { synchronous: false })
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const starting = app.register(usher, { databaseUrl, uploadsDir: folder, deadlines: { databaseFailover: 1 } })
  await t.rejects(async () => starting, { message: /^usher: the database accepts no writes: it is a standby/ })
})

t.test('14.4 after a failover, commands make and restore backups on the server that accepts writes, whichever host is named first', async (t) => {
  t.teardown(() => {})
  const folder = t.testdir()
  const replicas = await startReplicas(t, folder)
  const { app, createUser } = await createUsher(
    t, { databaseUrl: replicas.url, schema, uploadsDir: join(folder, 'uploads') }
  )
  const settings = (DATABASE_URL: string) => ({ DATABASE_URL, DATA_DIR: folder })
  const { id } = await createUser()
  const results: unknown[] = []
  const backUp = async (url: string, name: string) => {
    const { code, stderr } = await runCommand(['backup', join(folder, name)], settings(url), folder)
    results.push([name, code, stderr])
  }
  await backUp(replicas.reversed, 'before')
  await app.close()
  replicas.killPrimary()
  await replicas.promote()
  await backUp(replicas.url, 'dead-first')
  await backUp(replicas.reversed, 'dead-last')
  t.strictSame(results, [['before', 0, ''], ['dead-first', 0, ''], ['dead-last', 0, '']])
  for (const [url, name] of [[replicas.url, 'dead-last'], [replicas.reversed, 'dead-first']] as const) {
    const { code, stderr } = await runCommand(['restore', join(folder, name), '--replace', '--yes'], settings(url), folder)
    t.strictSame([code, stderr], [0, ''], `restored from ${name}`)
  }
  const sql = openSql(t, { options: { databaseUrl: replicas.standbyUrl, schema } })
  t.equal((await sql`select from users where id = ${id}`).length, 1)
})
