import { randomUUID } from 'node:crypto'
import { readdir, stat, utimes, writeFile } from 'node:fs/promises'
import postgres from 'postgres'
import t from 'tap'
import { verifyBackup } from '../../node/backup/restore.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { backUp, placeOf, restore, schema, withSql } from '../helpers/backup.ts'
import { createDatabase } from '../helpers/database.ts'
import { hostOf } from '../helpers/graphql.ts'
import { spawnNode, startNode, type ServingNode } from '../helpers/node.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

type Headers = Record<string, string>

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const admin = { email: 'root@example.com', password: 'horse battery staple' }
const timeOf = (id: string) => parseInt(id.replaceAll('-', '').slice(0, 12), 16)

/** Returns the source of a module that sets the clock of a process. */
const setClock = (offBy: number) => `
  const { now } = Date
  Date.now = () => now() + ${offBy}
  globalThis.Date = new Proxy(Date, {
    construct: (target, given, self) => Reflect.construct(target, given.length > 0 ? given : [target.now()], self)
  })
  Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + ${offBy} })`

t.test('4 nodes whose clocks are wrong by two hours', async (t) => {
  const databaseUrl = await createDatabase(t)
  const cwd = t.testdir()
  const options = { databaseUrl, schema: 'usher', uploadsDir: `${cwd}/data/uploads`, admin }
  const right = await createUsher(t, options)
  const brief = await createUsher(t, { ...options, accessTokenSeconds: 5 })
  const account = { ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password }
  const settings = { DATABASE_URL: databaseUrl, ...account, LOG_LEVEL: 'warn' }
  const start = (offBy: number) => startNode(t, { cwd, settings, inject: setClock(offBy) })
  const run = (offBy: number, args: string[]) =>
    spawnNode(t, { cwd, settings, inject: `${setClock(offBy)}\nprocess.argv.push(...${JSON.stringify(args)})` })
  const [behind, ahead] = await Promise.all([start(-2 * HOUR_MS), start(2 * HOUR_MS)])
  const { headers: { authorization } } = await behind.login(admin)

  t.test('4 they issue and verify tokens by the clock of the database', async (t) => {
    const wrongs = [['behind', behind, -7200], ['ahead', ahead, 7200]] as const
    await Promise.all(wrongs.map(async ([name, wrong, difference]) => {
      const { headers } = await wrong.login(admin)
      const here = [await statusAt(wrong, headers), await statusAt(right, headers)]
      t.strictSame(here, [200, 200], `${name}: its tokens are valid on all nodes`)
      const user = await right.createUser()
      t.equal(await statusAt(wrong, user.headers), 200, `${name}: it accepts tokens of other nodes`)
      await right.inject('POST', '/api/auth/logout', { headers: user.headers })
      await until('the node rejects the ended session', async () => await statusAt(wrong, user.headers) === 401)

      const { headers: expiring } = await brief.login(await right.createUser())
      t.equal(await statusAt(wrong, expiring), 200)
      await until('the token has expired', async () => await statusAt(wrong, expiring) === 401)
      const message = 'The clock of this machine differs from the database clock, which is used instead'
      await until('the difference is logged', () => wrong.stdout.includes(message))
      t.ok(wrong.stdout.includes(`"difference":${difference}`))
      if (wrong === ahead) return
      const late = await start(-2 * HOUR_MS)
      const statuses = [await statusAt(late, expiring), await statusAt(late, user.headers)]
      t.strictSame(statuses, [401, 401], `${name}: a node that starts afterwards rejects them as well`)
    }))
  })

  t.test('2.1 what they create stands in the order of creation, newest first', async (t) => {
    const created: Record<'users' | 'posts' | 'uploads', string[]> = { users: [], posts: [], uploads: [] }
    const between = `http://${await hostOf(right)}`
    const nodes = [ahead.url, between, behind.url, between, ahead.url, behind.url, ahead.url]
    for (const url of nodes) {
      const [user, post, file] = await createAt(url, authorization!)
      created.users.push(user)
      created.posts.push(post)
      created.uploads.push(file)
    }
    for (const [kind, ids] of Object.entries(created)) t.strictSame(ids, ids.toSorted(), `ids of ${kind} rise`)
    const get = async (path: string) => (await right.inject('GET', path, { headers: right.admin.headers })).json()
    const newestFirst = created.users.toReversed()
    const users = await get(`/api/users?limit=${nodes.length}`) as { id: string }[]
    t.strictSame(users.map(({ id }) => id), newestFirst, 'GET /api/users')
    const path = `/api/audit?action=user.create&limit=${nodes.length}`
    const entries = await get(path) as { userId: string, id: string, at: string }[]
    t.strictSame(entries.map(({ userId }) => userId), newestFirst, 'GET /api/audit')
    for (const { id, at } of entries) t.ok(Math.abs(timeOf(id) - Date.parse(at)) < MINUTE_MS, `${id} is of ${at}`)
  })

  t.test('4.1 they tell browsers how long the cookie of a session lives, not only until when', async (t) => {
    for (const { url } of [behind, ahead]) {
      const response = await fetch(`${url}/api/auth/login`, json({}, admin))
      const [, seconds] = /; Max-Age=(\d+);/.exec(response.headers.getSetCookie()[0]!) ?? []
      t.ok(Number(seconds) > 30 * 86_400 - 60 && Number(seconds) <= 30 * 86_400, `${seconds} seconds`)
    }
  })

  t.test('5.5 they neither remove nor report what other nodes are storing in the same folder', async (t) => {
    const folder = `${cwd}/data/uploads`
    await writeFile(`${folder}/tmp/of-another-node`, '')
    const { mtimeMs: before } = await stat(`${folder}/tmp/of-another-node`)
    const [,, id] = await createAt(behind.url, authorization!)
    t.ok((await stat(`${folder}/files/${id}`)).mtimeMs >= before, 'a published file has the time of the file system')
    const sql = postgres(databaseUrl)
    t.teardown(() => sql.end())
    t.equal((await sql`delete from usher.uploads where id = ${id}`).count, 1, 'a node is about to write the record')
    const clean = run(2 * HOUR_MS, ['uploads', 'clean', '--yes'])
    t.equal(await clean.ended, 0)
    t.match(clean.stdout, /^0 files without a record/)

    const stray = randomUUID()
    for (const path of [`${folder}/tmp/of-a-killed-node`, `${folder}/files/${stray}`]) {
      await writeFile(path, '')
      await utimes(path, 1, 1)
    }
    const next = await start(2 * HOUR_MS)
    await until('the folder is checked', () => next.stdout.includes('Stored files have no record'))
    t.match(next.stdout, '"files":1,', 'only the old one')
    t.strictSame(await readdir(`${folder}/tmp`), ['of-another-node'])
    t.ok((await readdir(`${folder}/files`)).includes(id))
    t.strictSame((await readdir(folder)).toSorted(), ['databases', 'files', 'parts', 'tmp'])
  })

  t.test('8 what a command on such a machine records stands first', async (t) => {
    const command = run(-2 * HOUR_MS, ['sessions', 'end', '--all'])
    t.equal(await command.ended, 0)
    const again = await right.login(admin)
    const entries = (await right.inject('GET', '/api/audit?limit=2', again)).json()
    t.match(entries, [{ action: 'login' }, { action: 'session.end', userAgent: 'usher command line' }])
  })
})

t.test('2.1 if the clock of a machine is set while its node runs, ids keep the time of the database', async (t) => {
  const usher = await createUsher(t)
  const { now } = Date
  t.teardown(() => { Date.now = now })
  const ids: string[] = []
  for (const offBy of [0, 2 * HOUR_MS, 0, -2 * HOUR_MS, 0]) {
    Date.now = () => now() + offBy
    ids.push((await usher.createUser()).id)
  }
  t.strictSame(ids, ids.toSorted(), 'they rise')
  const sql = openSql(t, usher)
  const rows = await sql<{ id: string, createdAt: Date }[]>`
    select id, created_at as "createdAt" from users
    union all select id, created_at from audit union all select id, created_at from sessions`
  t.ok(rows.length > 2 * ids.length)
  for (const { id, createdAt } of rows) t.ok(Math.abs(timeOf(id) - createdAt.getTime()) < MINUTE_MS, `${id} is right`)
})

t.test('8 entries of the account log are kept for as long as the database says', async (t) => {
  const { options } = await createUsher(t)
  const sql = openSql(t, { options })
  const idOf = (hoursAgo: number) => {
    const time = (Date.now() - hoursAgo * HOUR_MS).toString(16).padStart(12, '0')
    return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`
  }
  const [kept, old] = [idOf(23), idOf(25)] as const
  for (const id of [kept, old]) {
    await sql`insert into audit (id, action, address, user_agent) values (${id}, 'logout', '', '')`
  }
  const { now } = Date
  t.teardown(() => { Date.now = now })
  Date.now = () => now() + 100 * HOUR_MS
  await createUsher(t, { ...options, auditSeconds: 86_400, prefix: '/accounts' })
  await until('what is old is gone', async () => (await sql`select from audit where id = ${old}`).length === 0, 20)
  t.strictSame([...await sql`select id from audit where action = 'logout'`], [{ id: kept }])
})

t.test('14.4 a backup says what time it was by the database, and a restore begins an epoch of that time', async (t) => {
  const databaseUrl = await createDatabase(t)
  const usher = await createUsher(t, { databaseUrl, schema, uploadsDir: temporaryFolder() })
  await usher.app.close()
  const { now } = Date
  t.teardown(() => { Date.now = now })
  const file = `${t.testdir({ backup: {} })}/backup/file.tar.gz`
  await setDuring(2 * HOUR_MS, () => backUp(placeOf(usher), file))
  const { manifest } = await verifyBackup(file, () => {})
  t.ok(Math.abs(Date.parse(manifest.createdAt) - now()) < MINUTE_MS, manifest.createdAt)
  await setDuring(-2 * HOUR_MS, () => restore(file, placeOf(usher), { replaces: true }))
  const [row] = await withSql(databaseUrl, (sql) => sql<{ epoch: number }[]>`select epoch from current_epoch`)
  t.ok(Math.abs(row!.epoch - now() / MINUTE_MS) < 2, `epoch ${row!.epoch}`)
})

t.test('4 if the clock of a machine is set forward and back, its node still rejects all ended sessions', async (t) => {
  const usher = await createUsher(t)
  const [gone, other] = [await usher.createUser(), await usher.createUser()]
  const { now } = Date
  t.teardown(() => { Date.now = now })
  await usher.inject('POST', '/api/auth/logout', { headers: gone.headers })
  Date.now = () => now() + HOUR_MS
  await usher.inject('POST', '/api/auth/logout', { headers: other.headers })
  t.equal(await statusAt(usher, usher.admin.headers), 200)
  Date.now = now
  t.equal(await statusAt(usher, gone.headers), 401)
  t.equal(await statusAt(usher, other.headers), 401)
})

t.test('4 the time at which a session ended is that of its deletion, not the beginning of the transaction', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const { began, ended } = await sql.begin(async (sql) => {
    const [row] = await sql`select now() as began, pg_sleep(0.01)`
    await sql`delete from sessions`
    const [{ ended_at: ended } = {}] = await sql`select ended_at from ended_sessions`
    return { began: row!.began, ended }
  })
  t.ok(ended > began)
})

/** Runs a function while the clock of this process is set. */
async function setDuring (offBy: number, run: () => Promise<unknown>): Promise<void> {
  const { Date: real } = globalThis
  globalThis.Date = new Proxy(real, {
    construct: (target, given, self) =>
      Reflect.construct(target, given.length > 0 ? given : [real.now() + offBy], self),
    get: (target, name, self) => name === 'now' ? () => real.now() + offBy : Reflect.get(target, name, self),
  })
  await run().finally(() => { globalThis.Date = real })
}

const json = (headers: Headers, body: object) =>
  ({ method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) })

/** Creates a user, a post and an upload. Returns their ids. */
async function createAt (url: string, authorization: string): Promise<[user: string, post: string, upload: string]> {
  const form = new FormData()
  form.set('description', 'Kept')
  form.set('file', new Blob(['kept']), 'kept.txt')
  const send = async (path: string, init: RequestInit) => await (await fetch(`${url}${path}`, init)).json() as any
  const user = await send(
    '/api/users', json({ authorization }, { name: 'Somebody', email: `${randomUUID()}@example.com` })
  )
  const query = 'mutation { createPost(input: { title: "A", content: "" }) { id } }'
  const post = await send('/graphql', json({ authorization }, { query }))
  const upload = await send('/api/uploads', { method: 'POST', headers: { authorization }, body: form })
  return [user.id, post.data.createPost.id, upload.id]
}

async function statusAt (node: ServingNode | TestUsher, headers: Headers): Promise<number> {
  if ('fetch' in node) return (await node.fetch('/api/protected', { headers })).status
  return (await node.inject('GET', '/api/protected', { headers })).statusCode
}
