import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import Fastify from 'fastify'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import usher from '../../../app.ts'
import { startEmbedded } from '../../../node/embedded/server.ts'
import { slowNode } from '../../helpers/deadlines.ts'
import { createUsher } from '../../helpers/app.ts'
import { prepareFolder, testDatabaseUrl, uniqueSchema } from '../../helpers/database.ts'
import { createProxy } from '../../helpers/proxy.ts'
import { until } from '../../helpers/until.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'

// A server that is read-only, like a standby, and has the same password.
t.teardown(() => {})
const primary = new URL(await testDatabaseUrl())
const readOnly = await startEmbedded({
  dataDir: await prepareFolder(t, temporaryFolder()),
  tcp: true,
  settings: { fsync: 'off', default_transaction_read_only: 'on' },
  deadlines: slowNode,
})
t.teardown(readOnly.stop)
const owner = postgres(readOnly.tcpUrl!, { max: 1 })
await owner.unsafe('set default_transaction_read_only = off')
await owner.unsafe(`alter role usher password '${primary.password}'`)
await owner.end()
const { host: standby } = new URL(readOnly.tcpUrl!)

const urlOf = (...hosts: string[]) =>
  `postgres://${primary.username}:${primary.password}@${hosts.join()}${primary.pathname}`
// Nothing listens on privileged ports. One that was free a moment ago may be taken by another test.
const [closed, alsoClosed] = ['127.0.0.1:1', '127.0.0.1:2']

async function refusal (t: Test, ...hosts: string[]): Promise<void> {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const schema = uniqueSchema(t.name)
  const deadlines = { databaseFailover: 1 }
  await app.register(usher, { databaseUrl: urlOf(...hosts), schema, uploadsDir: temporaryFolder(), deadlines })
}

t.test('1.10 of several hosts, the one that accepts writes is used, regardless of the order', async (t) => {
  const schema = uniqueSchema(t.name)
  for (const hosts of [[standby, primary.host], [primary.host, standby], [closed, standby, primary.host]]) {
    const { admin, inject } = await createUsher(t, { databaseUrl: urlOf(...hosts), schema })
    const create = async () => (await inject('POST', '/api/users', {
      headers: admin.headers, payload: { name: 'Ada', email: `${crypto.randomUUID()}@example.com` },
    })).statusCode
    t.strictSame(await Promise.all([create(), create(), create()]), [201, 201, 201])
  }
})

t.test('1.10 if none of several hosts accepts writes, the start fails with the reason', async (t) => {
  const code = 'DATABASE_UNAVAILABLE'
  const message = /^usher: the database accepts no writes: it is a standby/
  await t.rejects(refusal(t, closed, standby), { code, message })
  await t.rejects(
    refusal(t, closed, alsoClosed), { code, message: 'usher: the database cannot be reached (ECONNREFUSED)' }
  )
})

t.test('1.10 a primary that answers slowly is found within the deadline for it', async (t) => {
  const proxy = await createProxy(t, primary.href)
  const { inject } = await createUsher(t, { databaseUrl: urlOf(new URL(proxy.url).host, standby) })
  // Each of the four answers that it takes to connect and ask is delayed.
  proxy.delayReplies(300)
  proxy.cut()
  await until('the primary is found again', async () => (await inject('GET', '/api/users')).statusCode === 200, 20)
})

t.test('1.10 when another host takes over, requests get 503 until then, and service resumes without intervention', async (t) => {
  const [one, other] = [await createProxy(t, primary.href), await createProxy(t, primary.href)]
  other.refuse()
  const { inject } = await createUsher(
    t, { databaseUrl: urlOf(...[one, other].map(({ url }) => new URL(url).host), standby) }
  )
  const status = async () => (await inject('GET', '/api/users')).statusCode
  t.equal(await status(), 200)
  one.refuse()
  await until('requests get 503', async () => await status() === 503, 20)
  await other.listen()
  await until('the other host is used', async () => await status() === 200, 20)
})

t.test('9 a client of the host may connect through a Unix socket', async (t) => {
  // PostgreSQL names its socket after its port. The path of a Unix socket has at most 107 bytes, so it is in the folder
  // for temporary files rather than in the repository.
  const folder = mkdtempSync(join(tmpdir(), 'usher-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const server =
    createServer((socket) => { pipeline(socket, connect(Number(primary.port), primary.hostname), socket, () => {}) })
  await once(server.listen(join(folder, '.s.PGSQL.5432')), 'listening')
  t.teardown(() => server.close())
  const client = postgres({
    host: folder, port: 5432, user: primary.username, password: primary.password, database: primary.pathname.slice(1),
  })
  t.teardown(() => client.end())
  const { admin, inject } = await createUsher(
    t, { databaseUrl: undefined, sql: client, uploadsDir: join(folder, 'uploads') }
  )
  t.equal((await inject('GET', `/api/users/${admin.id}`)).statusCode, 200)
})
