import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import Fastify from 'fastify'
import type { ISql, Sql } from 'postgres'
import t, { type Test } from 'tap'
import usherPlugin from '../../app.ts'
import { createUsher, withUsers, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { openEvents } from '../helpers/events.ts'
import { openSocket, post, createPost, titles } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

// One node uses the database through a proxy that can fail. The other node writes.
const proxy = await createProxy(t, await testDatabaseUrl())
const writer = await createUsher(t)
const usher = await createUsher(t, { ...writer.options, databaseUrl: proxy.url, deadlines: {} })

/** Subscribes to the posts that a node delivers, until the test ends. */
async function subscribe (t: Test, node = usher) {
  // It may just find out that the connections are back that the test before has cut.
  await until('the node serves', async () => (await node.inject('GET', '/health/ready')).statusCode === 200)
  const socket = await (await openSocket(t, node)).init()
  socket.start('posts', 'subscription { postCreated { title } }')
  await socket.settle()
  return socket
}

t.test('7.7 after an outage of its database connections, a node delivers missed posts exactly once', async (t) => {
  const socket = await subscribe(t)
  await createPost(writer, writer.admin, 'Before')
  t.same(await titles(socket, 1), ['Before'])
  for (const round of [1, 2, 3]) {
    await proxy.refuse()
    for (const which of ['first', 'second']) await createPost(writer, writer.admin, `Meanwhile ${round}, ${which}`)
    await proxy.listen()
    t.same(await titles(socket, 2), [`Meanwhile ${round}, first`, `Meanwhile ${round}, second`])
  }
  await createPost(writer, writer.admin, 'After')
  t.same(await titles(socket, 1), ['After'])
  t.equal((await post(usher, { query: '{ posts { nodes { id } } }' })).errors, undefined)
})

t.test('7.7 posts created while nobody was subscribed are not delivered later', async (t) => {
  const socket = await subscribe(t)
  const sql = openSql(t, writer)
  socket.stop('posts')
  await socket.settle()
  const user = await writer.createUser()
  await sql`insert into posts (id, author_id, title, content) select uuidv7(), ${writer.admin.id}, 'Unasked for', '' from generate_series(1, 10100)`
  // When the token is rejected, the node has also received the notifications of the posts, which were sent earlier.
  await writer.inject('POST', '/api/auth/logout', { headers: user.headers })
  while ((await post(usher, { query: '{ __typename }' }, user)).data) await new Promise(setImmediate)
  socket.start('posts', 'subscription { postCreated { title } }')
  await socket.settle()
  await proxy.refuse()
  await createPost(writer, writer.admin, 'Missed')
  await proxy.listen()
  t.same(await titles(socket, 1), ['Missed'])
})

nightly('7.7 a first subscriber gets a post whose notification arrives before the reply with the current position', async (t) => {
  const direct = await testDatabaseUrl()
  const name = uniqueSchema('overtaking')
  const proxy = await createProxy(t, `${direct}?application_name=${name}`)
  const usher = await createUsher(
    t, { ...writer.options, databaseUrl: proxy.url, deadlines: {}, notificationsUrl: direct, poolSize: 2 }
  )
  const sql = openSql(t, writer)
  const user = await writer.createUser()
  const socket = await (await openSocket(t, usher)).init()
  // After this the connection has prepared the statement, so it sends the statement in one piece.
  socket.start('before', 'subscription { postCreated { title } }')
  await socket.settle()
  socket.stop('before')
  await socket.settle()
  const [{ now }] = await sql<[{ now: string }]>`select clock_timestamp()::text as now`
  // With a longer delay the node would consider the database unavailable.
  proxy.delayReplies(200)
  socket.start('posts', 'subscription { postCreated { title } }')
  await until('answered', async () => (await sql`
    select from pg_stat_activity where application_name = ${name} and state = 'idle' and query like '%posts_position_seq%'
      and query_start > ${now}::timestamptz`).length > 0)
  await createPost(writer, writer.admin, 'Overtaking')
  // When the token is rejected, the node has also received the notification of the post, which was sent earlier.
  await writer.inject('POST', '/api/auth/logout', { headers: user.headers })
  await until('heard', async () => (await post(usher, { query: '{ __typename }' }, user)).errors)
  t.same(await titles(socket, 1), ['Overtaking'])
})

nightly('7.7 posts reach subscribers while only notifications are unavailable', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const socket = await subscribe(t, await createUsher(t, { ...writer.options, notificationsUrl: proxy.url }))
  proxy.refuse()
  for (const title of ['One', 'Two']) {
    await createPost(writer, writer.admin, title)
    t.same(await titles(socket, 1), [title])
  }
})

nightly('7.7 no post is missed while connections break under load', async (t) => {
  const socket = await subscribe(t)
  const expected = Array.from({ length: 300 }, (_, index) => `Post ${index}`)
  for (const [index, title] of expected.entries()) {
    await createPost(writer, writer.admin, title)
    if (index % 60 === 30) proxy.cut()
  }
  t.same(await titles(socket, 300), expected)
})

t.test('7.7 no post is missed if the database terminates connections', async (t) => {
  const socket = await subscribe(t)
  const sql = openSql(t, writer)
  for (const title of ['One', 'Two', 'Three']) {
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where query like ${`%${writer.options.schema}%`} and pid <> pg_backend_pid()`
    await sql`insert into posts (id, author_id, title, content) values (gen_random_uuid(), ${writer.admin.id}, ${title}, '')`
    t.same(await titles(socket, 1), [title])
  }
})

nightly('7.7 a deleted post is not delivered; failed reads are logged, and delivery resumes when they succeed', async (t) => {
  const lines = new PassThrough()
  const app = Fastify({ pluginTimeout: 0, logger: { stream: lines, level: 'error' } })
  t.teardown(() => app.close())
  const admin = { email: 'admin@example.com', password: 'horse battery staple' }
  const options = {
    databaseUrl: await testDatabaseUrl(),
    schema: uniqueSchema('unreadable'),
    uploadsDir: temporaryFolder(),
    poolSize: 2,
    admin,
  }
  await app.register(usherPlugin, options)
  const usher = await withUsers(app, options)
  const sql = openSql(t, usher)
  const insert = (sql: ISql, title: string) =>
    sql`insert into posts (id, author_id, title, content) values (gen_random_uuid(), ${usher.admin.id}, ${title}, '')`
  const socket = await (await openSocket(t, usher)).init()
  socket.start('posts', 'subscription { postCreated { title } }')
  await socket.settle()

  await sql`select pg_notify(${`${options.schema}_post_created`}, 'about no post')`
  await sql.begin(async (sql) => {
    await insert(sql, 'Gone')
    await sql`delete from posts`
  })
  await insert(sql, 'Told')
  t.same(await titles(socket, 1), ['Told'])

  await sql.begin(async (sql) => {
    await insert(sql, 'Unreadable')
    await sql`alter table posts rename to hidden`
  })
  const [line] = await once(lines, 'data')
  t.match(JSON.parse(line), {
    level: 50, msg: 'Posts could not be read for subscribers', err: { message: /relation ".*" does not exist/ },
  })
  await sql`alter table hidden rename to posts`
  t.same(await titles(socket, 1), ['Unreadable'])
  await insert(sql, 'The next')
  t.same(await titles(socket, 1), ['The next'])
})

// Makes the next statement on a table wait and then fail like a statement that exceeds its time limit. Such a statement
// may be repeated.
async function obstruct (usher: TestUsher, sql: Sql, table: 'users' | 'posts', provoke: () => void): Promise<void> {
  await sql.begin(async (locked) => {
    await locked`lock table ${locked(table)} in access exclusive mode`
    provoke()
    await until('a statement waits', async () => (await sql`
      select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and query like ${`%"${usher.options.schema}"."${table}"%`}`).length > 0)
  })
}

nightly('7.7 an event whose author cannot be read is delivered when the author can be read', async (t) => {
  const sql = openSql(t, writer)
  const socket = await (await openSocket(t, writer)).init()
  socket.start('posts', 'subscription { postCreated { title author { name } } }')
  await socket.settle()
  const insert = (title: string) =>
    sql`insert into posts (id, author_id, title, content) values (gen_random_uuid(), ${writer.admin.id}, ${title}, '')`
  await insert('First')
  t.match(await socket.next(), { payload: { data: { postCreated: { title: 'First', author: { name: 'Admin' } } } } })
  let inserted: Promise<unknown> | undefined
  await obstruct(writer, sql, 'users', () => { inserted = Promise.all([insert('Second'), insert('Third')]) })
  await inserted
  for (const title of ['Second', 'Third']) {
    t.match(await socket.next(), { payload: { data: { postCreated: { title, author: { name: 'Admin' } } } } })
  }
})

nightly('7.7 if reading a page of missed posts fails, the page is read again', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${usher.admin.id}, n, ${'x'.repeat(60_000)} from generate_series(0, 499) n`
  const socket = await (await openSocket(t, usher)).init()
  socket.socket.pause()
  socket.start(
    'posts', `subscription { postCreated(after: "${Buffer.alloc(12).toString('base64url')}") { title content } }`
  )
  // The node does not read the next page while unsent events are waiting.
  await until('the node waits', async () => (await sql`
    select from pg_stat_activity where state = 'idle' and query like ${`%"${usher.options.schema}"."posts"%"position" >%`} and state_change < clock_timestamp() - interval '200 ms'`).length > 0)
  await obstruct(usher, sql, 'posts', () => socket.socket.resume())
  t.same(await titles(socket, 500), Array.from({ length: 500 }, (_, index) => String(index)))
})

nightly('7.7 subscribers are not rejected while the database is slow to return the current position', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const sockets = await Promise.all([1, 2, 3].map(async () => (await openSocket(t, usher)).init()))
  await sql.begin(async (lock) => {
    await lock`lock table posts in access exclusive mode`
    for (const [index, socket] of sockets.entries()) {
      socket.start('1', 'subscription { postCreated { title } }')
      // At most two such statements run at a time.
      await until('it waits', async () => (await sql`
        select from pg_stat_activity where wait_event_type = 'Lock' and query like ${`%"${usher.options.schema}".%posts_position_seq%`}`).length ===
      Math.min(index + 1, 2))
    }
    const since = performance.now()
    await until('the last one has waited for longer than a write would', () => performance.now() - since > 1500)
  })
  for (const socket of sockets) await socket.settle()
  await createPost(usher, usher.admin, 'For all')
  for (const socket of sockets) t.same(await titles(socket, 1), ['For all'])
})

t.test('1.10 clients that subscribe while the database is unavailable are told to reconnect', async (t) => {
  const socket = await subscribe(t)
  // The other node writes, since this one has the deadlines of production, which a busy machine exceeds.
  const { data, errors } = await post(
    writer, { query: 'mutation { createPost(input: { title: "Before", content: "" }) { cursor } }' }, writer.admin
  )
  t.equal(errors, undefined)
  const { cursor } = data.createPost as { cursor: string }
  t.same(await titles(socket, 1), ['Before'])
  await proxy.refuse()
  await until('the database is away', async () => (await usher.inject('GET', '/health/ready')).statusCode === 503)
  const asking = await (await openSocket(t, usher)).init()
  asking.start('1', 'subscription { postCreated { title } }')
  t.equal(await asking.closed, 1013)
  const refused = await openSocket(t, usher)
  refused.send({ type: 'connection_init', payload: usher.admin.headers })
  t.equal(await refused.closed, 1013)
  const query = 'subscription { postCreated { title } }'
  for (const init of [
    { query: `?${new URLSearchParams({ query })}` }, { method: 'POST', body: JSON.stringify({ query }) },
  ]) {
    const events = await openEvents(t, usher, init)
    t.equal(events.response.status, 200)
    t.same(await events.any(), { retry: '1000' })
    t.equal(await events.any(), undefined)
  }
  await createPost(writer, writer.admin, 'Meanwhile')
  await proxy.listen()
  t.same(await titles(socket, 1), ['Meanwhile'])
  const again = await openEvents(
    t, usher, { query: `?${new URLSearchParams({ query })}`, headers: { 'last-event-id': cursor } }
  )
  t.same((await again.answers(1)).map(({ data }) => data.postCreated.title), ['Meanwhile'])
})
