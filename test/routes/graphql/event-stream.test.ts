import { once } from 'node:events'
import t from 'tap'
import { createUsher } from '../../helpers/app.ts'
import { testDatabaseUrl } from '../../helpers/database.ts'
import { openEvents } from '../../helpers/events.ts'
import { createPost, hostOf } from '../../helpers/graphql.ts'
import { createProxy } from '../../helpers/proxy.ts'

const POSTS = { query: `?${new URLSearchParams({ query: 'subscription { postCreated { title } }' })}` }

t.test('7.7 a client that was cut off before its first event gets what it missed, too', async (t) => {
  const usher = await createUsher(t)
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

t.test('7.7 a stop ends a stream, too, that was being opened', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const usher = await createUsher(t, { databaseUrl: proxy.url }, { forceCloseConnections: false, keepAliveTimeout: 1 })
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
