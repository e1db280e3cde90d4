import { once } from 'node:events'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { openEvents } from '../helpers/events.ts'
import { createPost, hostOf, openSocket, protocols } from '../helpers/graphql.ts'
import { createProxy } from '../helpers/proxy.ts'
import { until } from '../helpers/until.ts'

const SUBSCRIPTION = 'subscription { postCreated { title } }'
const POSTS = { query: `?${new URLSearchParams({ query: SUBSCRIPTION })}` }

const proxy = await createProxy(t, await testDatabaseUrl())
const usher = await createUsher(t, { databaseUrl: proxy.url, deadlines: {} })

t.test('7.7 a client that was disconnected before its first event also gets what it missed', async (t) => {
  await createPost(usher, usher.admin, 'Before')
  let events = await openEvents(t, usher, POSTS)
  for (const title of ['Missed', 'And again']) {
    const { id } = (await events.any())!
    events.abort()
    await createPost(usher, usher.admin, title)
    events = await openEvents(t, usher, { ...POSTS, headers: { 'last-event-id': id! } })
    t.same(await events.any(), { retry: '1000', id }, 'it goes on from where it was')
    t.same(await events.answers(1), [{ data: { postCreated: { title } } }])
    events.abort()
    events = await openEvents(t, usher, POSTS)
  }
})

t.test('7.7 a client that subscribes while the database is unavailable is told to reconnect', async (t) => {
  await proxy.refuse()
  await until('it is away', async () => (await usher.inject('GET', '/health/ready')).statusCode === 503)
  for (const protocol of protocols) {
    const socket = await (await openSocket(t, usher, { protocol })).init()
    socket.start('1', SUBSCRIPTION)
    t.equal(await socket.closed, 1013)
  }
  for (const init of [POSTS, { method: 'POST', body: JSON.stringify({ query: SUBSCRIPTION }) }]) {
    const { response, any } = await openEvents(t, usher, init)
    t.equal(response.status, 200)
    t.same([await any(), await any()], [{ retry: '1000' }, undefined])
  }
  await proxy.listen()
})

t.test('7.7 stopping the node also ends a stream that is being opened', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const usher = await createUsher(
    t, { databaseUrl: proxy.url, deadlines: {} }, { forceCloseConnections: false, keepAliveTimeout: 1 }
  )
  await hostOf(usher)
  proxy.freeze()
  const opened = openEvents(t, usher, POSTS)
  await once(usher.app.server, 'request')
  const closed = usher.app.close()
  await new Promise(setImmediate)
  proxy.thaw()
  const { next } = await opened
  t.equal(await next(), undefined)
  await closed
})
