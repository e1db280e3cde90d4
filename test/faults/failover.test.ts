import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { openEvents } from '../helpers/events.ts'
import { createPost, openSocket, post, titles } from '../helpers/graphql.ts'
import { startReplicas } from '../helpers/replicas.ts'
import { until } from '../helpers/until.ts'

// PostgreSQL replicates sequences some numbers ahead: with more posts than these are lost, positions are given out again.
const LOST = 40

t.test('7.7 a standby takes over without the latest posts: subscriptions that may miss posts fail with CURSOR_LOST', async (t) => {
  // Otherwise tap would remove the folder first.
  t.teardown(() => {})
  const folder = t.testdir()
  const replicas = await startReplicas(t, folder, { synchronous: false })
  const usher = await createUsher(t, { databaseUrl: replicas.url, uploadsDir: folder })
  const { admin } = usher
  const create = async (title: string): Promise<string> => {
    const { data } = await post(usher, { query: `mutation { createPost(input: { title: "${title}", content: "" }) { cursor } }` }, admin)
    return data?.createPost.cursor
  }
  const subscribe = async (args = '') => {
    const socket = await (await openSocket(t, usher)).init()
    socket.start('posts', `subscription { postCreated${args} { title } }`)
    return socket
  }
  const events = (lastEventId: string) => openEvents(t, usher, {
    method: 'POST', body: JSON.stringify({ query: 'subscription { postCreated { title } }' }), headers: { 'last-event-id': lastEventId },
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
  await until('writes go on', async () => {
    first = await create('New 0')
    return first
  })

  t.match(await running.next(), { type: 'error', id: 'posts', payload: [lost] }, 'a running subscription fails')
  const early = await subscribe(`(after: "${afterLost.at(-1)}")`)
  t.match(await early.next(), { type: 'error', payload: [lost] }, 'a cursor behind the posts fails')
  for (let count = 1; count < LOST + 40; count++) await createPost(usher, admin, `New ${count}`)
  const late = await subscribe(`(after: "${afterLost.at(-1)}")`)
  t.match(await late.next(), { type: 'error', payload: [lost] }, 'so it does when its position was given out again')
  t.match(await (await events(afterLost.at(-1)!)).answers(1), [{ data: null, errors: [lost] }])

  const before = await subscribe(`(after: "${replicated}")`)
  t.same(await titles(before, LOST + 40), Array.from({ length: LOST + 40 }, (_, count) => `New ${count}`), 'an earlier cursor leads on')
  const after = await subscribe(`(after: "${first}")`)
  t.same(await titles(after, 1), ['New 1'])
})
