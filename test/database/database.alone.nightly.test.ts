import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import Fastify from 'fastify'
import postgres from 'postgres'
import t from 'tap'
import usher from '../../app.ts'
import { HEARTBEAT } from '../../db/driver/notification-connection.ts'
import { createUsher } from '../helpers/app.ts'
import { createDatabase, testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { slow } from '../helpers/deadlines.ts'
import { DatabaseUnavailable } from '../../schema/http/errors.ts'
import { purgeRegularly } from '../../plugins/support/purge.ts'
import { createLoad } from '../helpers/load.ts'
import { nightly, sample } from '../helpers/nightly.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

t.test('1.10 without a database at the start, ready() rejects with a message, and the process can end', async (t) => {
  const code = `
    import Fastify from 'fastify'
    import usher from ${JSON.stringify(new URL('../../app.ts', import.meta.url).href)}
    const app = Fastify({ pluginTimeout: 0 })
    app.register(usher, { databaseUrl: process.argv[1], uploadsDir: ${JSON.stringify(t.testdir())} })
    await app.ready().catch((error) => console.log(error.code, error.message))`
  const url = new URL(await testDatabaseUrl())
  const unknown = Object.assign(new URL(url), { pathname: '/nowhere' })
  const cases: [string, RegExp][] = [
    [
      'postgres://nobody@127.0.0.1:1/none',
      /^DATABASE_UNAVAILABLE usher: the database cannot be reached \(ECONNREFUSED\)/,
    ],
    [unknown.href, /^3D000 usher: the database cannot be used \(database "nowhere" does not exist\)|^28000 usher: /],
  ]
  for (const [databaseUrl, expected] of cases) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', code, databaseUrl], {
      stdio: ['ignore', 'pipe', 'inherit'], cwd: new URL('../..', import.meta.url),
    })
    const [said, [status]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    t.match(said, expected)
    t.equal(status, 0, 'ended by itself')
  }
})

nightly('1.10 if the database fails during the start, ready() rejects, and the connections are closed', async (t) => {
  const direct = postgres(await testDatabaseUrl(), { max: 1 })
  t.teardown(() => direct.end())
  const reason = '(ECONNREFUSED|ECONNRESET|CONNECTION_CLOSED)'
  const failures = {
    databaseUrl: { code: 'DATABASE_UNAVAILABLE', message: new RegExp(`cannot be reached \\(${reason}\\)`) },
    notificationsUrl: { message: new RegExp(`notificationsUrl cannot be used to receive notifications: .*${reason}`) },
  }
  for (const [failing, failure] of Object.entries(failures)) {
    const proxy = await createProxy(t, await testDatabaseUrl())
    const app = Fastify({ pluginTimeout: 0 })
    t.teardown(() => app.close())
    const name = `${failing} ${process.pid}`
    const connections = () => direct`select from pg_stat_activity where application_name = ${name}`
    const databaseUrl = `${await testDatabaseUrl()}?application_name=${encodeURIComponent(name)}`
    app.register(usher, {
      databaseUrl,
      [failing]: proxy.url,
      schema: uniqueSchema(t.name),
      uploadsDir: temporaryFolder(),
      // The start does not wait for a failover.
      deadlines: { databaseFailover: 1 },
    })
    // This runs after the migrations and before the notifications.
    app.register(async () => {
      if (failing === 'notificationsUrl') t.not((await connections()).length, 0, 'these stay open')
      proxy.refuse()
    })
    await t.rejects(async () => app.ready(), failure)
    await until('they are closed', async () => (await connections()).length === 0)
  }
})

nightly('1.10 a start does not fail if the database pauses for longer than a request may wait', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  let pauses = 0
  // This runs during the last step of the start, with a heartbeat.
  const pause = async (): Promise<void> => {
    pauses++
    proxy.freeze()
    await delay(1000)
    proxy.thaw()
  }
  const { inject } = await createUsher(
    t, { databaseUrl: proxy.url, deadlines: {}, schema: uniqueSchema(t.name), hooks: { beforeUserCreate: pause } }
  )
  t.equal(pauses, 1)
  t.equal((await inject('GET', '/health/ready')).statusCode, 200)

  proxy.freeze()
  t.equal((await inject('GET', '/api/users')).statusCode, 503, 'requests do not wait for as long')
  proxy.thaw()
})

nightly('4 notifications may use another URL; if it leads to another database, ready() rejects', async (t) => {
  const databaseUrl = await testDatabaseUrl()
  const proxy = await createProxy(t, databaseUrl)
  const { app, admin, createUser, inject } = await createUsher(t, { databaseUrl, notificationsUrl: proxy.url })
  const { headers } = await createUser()
  await inject('DELETE', '/api/auth/sessions', { headers: admin.headers })
  t.equal((await inject('GET', '/api/protected', { headers })).statusCode, 200)
  t.equal(proxy.dialed, 1, 'one connection, for all of them')
  await app.close()

  const elsewhere = await createDatabase(t)
  const other = Fastify({ pluginTimeout: 0 })
  t.teardown(() => other.close())
  // None arrives, however long the start waits.
  const deadlines = { ...slow, notificationDelivery: 100 }
  const schema = uniqueSchema(t.name)
  other.register(usher, { databaseUrl, notificationsUrl: elsewhere, deadlines, schema, uploadsDir: temporaryFolder() })
  await t.rejects(async () => other.ready(), { message: /^usher: notificationsUrl must lead to the database itself: / })
})

nightly('4 1.10 while only notifications are unavailable, all requests succeed, and sessions are read from the database', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const one = await createUsher(t)
  const lines: string[] = []
  const note = ({ msg }: { msg: string }) => { if (msg.startsWith('The ')) lines.push(msg) }
  const logger = { level: 'info', stream: { write: (line: string) => note(JSON.parse(line)) } }
  // How soon an outage is noticed, and an attempt to connect that gets no answer is given up.
  const deadlines = { ...slow, databaseAnswer: 2000, databaseAnswerMax: 3000, databaseConnect: 2000 }
  const two = await createUsher(t, { ...one.options, notificationsUrl: proxy.url, deadlines }, { logger })
  const logged = (message: string) => lines.filter((line) => line === message).length
  for (const [fault, mend] of [[proxy.refuse, proxy.listen], [proxy.freeze, proxy.abandon]]) {
    lines.length = 0
    fault!()
    await until('it is noticed', () => logged('The notifications of the database are unavailable') > 0)
    for (let round = 0; round < 5; round++) {
      const { headers } = await one.login(one.admin)
      const read = async (path: string) => (await two.inject('GET', path, { headers })).statusCode
      t.strictSame(await Promise.all(['/api/protected', '/api/users', '/health/ready'].map(read)), [200, 200, 200])
      await one.inject('POST', '/api/auth/logout', { headers })
      t.equal(await read('/api/protected'), 401)
    }
    await mend!()
    await until('they are back', () => logged('The notifications of the database are available again') > 0)
    t.strictSame(
      lines,
      ['The notifications of the database are unavailable', 'The notifications of the database are available again'],
      'each change is logged once'
    )
  }
})

nightly('1.10 an outage that interrupts the removal of a deleted user is one line of the log', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const lines: { level: number, msg: string }[] = []
  const logger = { level: 'debug', stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } }
  const usher = await createUsher(t, { databaseUrl: proxy.url, deadlines: {} }, { logger })
  const sql = openSql(t, { options: { ...usher.options, databaseUrl: await testDatabaseUrl() } })
  const user = await usher.createUser()
  await sql.begin(async (trx) => {
    await trx`lock table posts in share mode`
    const deleted = usher.inject('DELETE', `/api/users/${user.id}`, { headers: usher.admin.headers })
    await until('the removal waits', async () =>
      (await sql`select from pg_locks where relation = 'posts'::regclass and not granted`).length > 0)
    proxy.refuse()
    await deleted
    await until('it is logged', () =>
      lines.some(({ level, msg }) => level === 20 && msg === 'The rows of deleted users could not be deleted'))
    await until('so is that of the files', () =>
      lines.some(({ level, msg }) => level === 20 && msg === 'Uploads of deleted users could not be removed'))
  })
  await until('so is the outage', () => lines.some(({ msg }) => msg === 'The database is unavailable'))
  t.same(lines.filter(({ level }) => level > 30).map(({ msg }) => msg), ['The database is unavailable'])
})

t.test('1.10 an outage is one line of the log, not one for each request and each purge', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const lines: { level: number, msg: string, reqId?: string }[] = []
  const logger = { level: 'debug', stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } }
  const { inject, options } = await createUsher(t, { databaseUrl: proxy.url, deadlines: {} }, { logger })
  lines.length = 0
  proxy.refuse()
  await until('away', async () => (await inject('GET', '/api/users')).statusCode === 503)
  await until('it is logged', () => lines.some(({ msg }) => msg === 'The database is unavailable'))
  for (let request = 0; request < 3; request++) t.equal((await inject('GET', '/api/users')).statusCode, 503)
  const purging = Fastify({ pluginTimeout: 0, logger })
  purgeRegularly(purging, 'rows', 3600, async () => { throw new DatabaseUnavailable() })
  await purging.ready()
  await purging.close()
  t.ok(lines.some(({ level, msg }) => level === 20 && msg === 'Old data could not be deleted'))
  t.same(lines.filter(({ level }) => level > 30).map(({ msg }) => msg), ['The database is unavailable'])
  await proxy.listen()
  await until('back', async () => (await inject('GET', '/api/users')).statusCode === 200)

  const sql = postgres(await testDatabaseUrl())
  t.teardown(() => sql.end())
  lines.length = 0
  await sql.begin(async (sql) => {
    await sql`lock table ${sql(options.schema!)}.users in access exclusive mode`
    for (let request = 0; request < 2; request++) {
      const response = inject('GET', '/api/users')
      await until('it waits', async () => (await sql`select pg_cancel_backend(pid) from pg_locks
        where not granted and relation = ${`${options.schema!}.users`}::regclass`).length > 0)
      t.equal((await response).statusCode, 503)
    }
  })
  t.match(
    lines.filter(({ level }) => level > 30),
    [{ level: 40, msg: 'The database could not run a statement', code: '57014' }],
    'why PostgreSQL itself refuses'
  )
})

nightly('1.10 if only the connection of notifications is terminated, no request gets 503', async (t) => {
  const name = `listener ${process.pid}`
  const url = `${await testDatabaseUrl()}?application_name=${encodeURIComponent(name)}`
  const usher = await createUsher(t, { databaseUrl: url })
  const direct = postgres(await testDatabaseUrl(), { max: 1 })
  t.teardown(() => direct.end())
  const load = await createLoad(usher)
  await load.next(201)
  for (let round = 0; round < 5; round++) {
    // The heartbeat distinguishes this connection from the others.
    const end = () =>
      direct`select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${name} and query = ${HEARTBEAT}`
    await until('ended', async () => (await end()).length === 1)
    await delay(50)
  }
  await load.stop()
  t.strictSame(load.answers.filter(({ status }) => status >= 300).slice(0, 3), [])
})

t.test('9 a postgres.js client of the host is used and stays open', async (t) => {
  const name = `owned ${process.pid}`
  const own = postgres(await testDatabaseUrl(), { max: 3, connection: { application_name: name } })
  t.teardown(() => own.end())
  const { app, createUser, inject } = await createUsher(t, { sql: own, databaseUrl: undefined })
  const { id } = await createUser({ name: 'Hosted' })
  const user = (await inject('GET', `/api/users/${id}`)).json()
  t.equal(user.name, 'Hosted')
  t.match(user.createdAt, /^\d{4}-\d\d-\d\dT/)
  const connections = () =>
    own`select pid from pg_stat_activity where application_name = ${name}`.then(({ length }) => length)
  t.ok(await connections() > 1)
  await app.close()
  await until("Usher's connections are gone", async () => await connections() === 1)
  t.strictSame([...await own`select 1 as one`], [{ one: 1 }])
})

nightly('9 of two mounts with different databases, one keeps working while the database of the other is unavailable', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const one = await createUsher(t, { databaseUrl: proxy.url, deadlines: {} })
  const two = await createUsher(t)
  const { id } = await two.createUser()
  proxy.refuse()
  await until('away', async () => (await one.inject('GET', '/api/users')).statusCode === 503)
  const away = await one.inject('GET', '/api/users')
  t.strictSame(away.json(), { error: 'The database is unavailable, try again', code: 'DATABASE_UNAVAILABLE' })
  t.equal(away.headers['retry-after'], '1')
  t.equal((await two.inject('GET', `/api/users/${id}`)).statusCode, 200)
  t.equal((await one.inject('GET', `/api/users/${id}`)).statusCode, 503)
  await proxy.listen()
  await until('back', async () => (await one.inject('GET', '/api/users')).statusCode === 200)
  t.equal((await one.inject('GET', `/api/users/${id}`)).statusCode, 404)
})

for (const state of sample(['is frozen', 'refuses connections', 'serves'] as const, 1)) {
  t.test(`8 the app closes promptly under load while the database ${state}`, async (t) => {
    const proxy = await createProxy(t, await testDatabaseUrl())
    const usher = await createUsher(t, { databaseUrl: proxy.url, deadlines: {} })
    const load = await createLoad(usher)
    await load.next(201)
    if (state === 'refuses connections') proxy.refuse()
    if (state === 'is frozen') proxy.freeze()
    await delay(20)
    // Requests sent from now on cannot connect.
    const ended = t.rejects(load.ended)
    await usher.app.close()
    await ended
    t.strictSame(load.answers.filter(({ status }) => ![200, 201, 503].includes(status)), [])
  })
}

/** Returns the options of an app that keeps the lines of its log from the level `info` on. */
function keepLog () {
  const lines: { level: number, msg: string, ms?: number, statement?: string }[] = []
  return {
    lines, server: { logger: { level: 'info', stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } } },
  }
}

nightly('8 a request that is still processed when the app has closed gets 503, and the log has no error', async (t) => {
  const { lines, server } = keepLog()
  const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let isAwaited = false
  const beforeLogin = async () => {
    if (!isAwaited) return
    reached.resolve()
    await gate.promise
  }
  const { app, inject, admin: { email, password } } = await createUsher(t, { hooks: { beforeLogin } }, server)
  isAwaited = true
  const answer = inject('POST', '/api/auth/login', { payload: { email, password } })
  await reached.promise
  await app.close()
  gate.resolve()
  const { statusCode, body } = await answer
  t.equal(statusCode, 503)
  t.equal(JSON.parse(body).code, 'DATABASE_UNAVAILABLE')
  t.same(lines.filter(({ level }) => level > 30), [])
})

nightly('8 what a request has left to the background ends before the database closes', async (t) => {
  const { lines, server } = keepLog()
  const usher = await createUsher(t, { deadlines: { userPurge: 10 } }, server)
  const user = await usher.createUser()
  const sql = openSql(t, usher)
  const closing = await sql.begin(async (sql) => {
    await sql`lock table recognised_networks in access exclusive mode`
    t.equal((await usher.inject('DELETE', `/api/users/${user.id}`, { headers: usher.admin.headers })).statusCode, 204)
    await until('the purge waits', async () =>
      (await sql`select from pg_locks where not granted and relation = 'recognised_networks'::regclass`).length > 0)
    const closing = usher.app.close()
    // An app that did not wait would have closed by then.
    await delay(200)
    return { closing }
  })
  await closing.closing
  t.same(lines.filter(({ level }) => level > 30), [])
  t.equal((await sql`select from deleted_users`).length, 0)
})

t.test('14.5 with slowStatementMs, the text of a slow statement is logged once a minute, without values', async (t) => {
  const { lines, server } = keepLog()
  const usher = await createUsher(t, { slowStatementMs: 300 }, server)
  const sql = openSql(t, usher)
  const { headers, id } = usher.admin
  lines.length = 0
  const change = (name: string) => usher.inject('PATCH', `/api/users/${id}`, { headers, payload: { name } })
  const slow = () => lines.filter(({ msg }) => msg === 'A statement was slow')
  const { changed } = await sql.begin(async (sql) => {
    await sql`select from users where id = ${id} for update`
    const changed = change('sesame')
    await until('it waits for the row', async () => (await sql`select from pg_locks
      where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))`).length > 0)
    await delay(400)
    return { changed }
  })
  t.equal((await changed).statusCode, 200)
  const [entry] = slow()
  t.match(entry, { level: 40, statement: /\$1/ })
  t.ok(entry!.ms! >= 300)
  for (const value of ['sesame', id]) t.notMatch(JSON.stringify(slow()), value)
  const texts = slow().map(({ statement }) => statement)
  t.equal(new Set(texts).size, texts.length, 'each text once')
})

nightly('14.2 metrics show outages of notifications, also while statements are answered', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const usher = await createUsher(t, { notificationsUrl: proxy.url, deadlines: {} })
  const read = async (name: string) =>
    (await usher.app.usher.metrics()).find((metric) => metric.name === name)?.samples[0]
  t.match(await read('usher_notifications_available'), { value: 1 })
  t.match(await read('usher_notifications_outages_total'), { value: 0 })
  proxy.refuse()
  await until(
    'they are unavailable', async () => (await read('usher_notifications_available') as { value: number }).value === 0
  )
  t.equal((await usher.inject('GET', '/api/users')).statusCode, 200)
  await proxy.listen()
  await until(
    'they are available', async () => (await read('usher_notifications_available') as { value: number }).value === 1
  )
  t.match(await read('usher_notifications_outages_total'), { value: 1 })
})
