import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { openEvents, type Events } from '../helpers/events.ts'
import { createPost, hostOf, openSocket, protocols, titles } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const POSTS = 'subscription { postCreated { title } }'
const inAddress = (query: string) => ({ query: `?${new URLSearchParams({ query })}` })
const asked = (query: string) => ({ method: 'POST', body: JSON.stringify({ query }) })

/** Returns the status of the response to a WebSocket handshake from an address. */
async function statusOf (t: Test, usher: TestUsher, address: string) {
  const socket = new WebSocket(
    `ws://${await hostOf(usher)}/graphql`, protocols[0], { headers: { 'x-forwarded-for': address } }
  )
  t.teardown(() => socket.terminate())
  const response = await Promise.race([
    once(socket, 'upgrade'), once(socket, 'unexpected-response').then(([, response]) => [response]),
  ])
  return { socket, status: response[0].statusCode, headers: response[0].headers }
}

t.test('1.13 open sockets and event streams are limited per network and for all networks together', async (t) => {
  const usher = await createUsher(t, { live: { connectionsPerNetwork: 2, connections: 3 } }, { trustProxy: true })
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const events = await openEvents(t, usher, { ...inAddress(POSTS), headers: from('2001:db8::1') })
  const { socket, status } = await statusOf(t, usher, '2001:db8::2')
  t.equal(status, 101)
  const rejected = await statusOf(t, usher, '2001:db8::3')
  t.match(rejected, { status: 429, headers: { 'retry-after': '5' } })
  const { response } = await openEvents(t, usher, { ...inAddress(POSTS), headers: from('2001:db8::4') })
  t.equal(response.status, 429)
  t.equal(response.headers.get('retry-after'), '5')
  t.match(await response.json(), { data: null, errors: [{ extensions: { code: 'TOO_MANY_CONNECTIONS' } }] })
  const posted = await openEvents(t, usher, { ...asked(POSTS), headers: from('2001:db8::4') })
  t.equal(posted.response.status, 200)
  t.match(await posted.answers(1), [{ data: null, errors: [{ extensions: { code: 'TOO_MANY_CONNECTIONS' } }] }])

  t.equal((await statusOf(t, usher, '192.0.2.1')).status, 101, 'another network')
  t.match(await statusOf(t, usher, '192.0.2.2'), { status: 503, headers: { 'retry-after': '5' } })
  const later = await openEvents(t, usher, { ...inAddress(POSTS), headers: from('192.0.2.3') })
  t.same([await later.any(), await later.any()], [{ retry: '1000' }, undefined], 'comes back by itself')

  socket.terminate()
  events.abort()
  for (const address of ['2001:db8::5', '2001:db8::6']) {
    await until(`a place for ${address}`, async () => (await statusOf(t, usher, address)).status === 101)
  }
})

t.test('1.13 clients without a token leave a quarter of the different subscriptions to users, from however many networks', async (t) => {
  const usher = await createUsher(t, { live: { subscriptions: 4 } }, { trustProxy: true })
  let count = 0
  const subscribe = (headers: Record<string, string> = {}, alias = `a${++count}`) => openEvents(t, usher, {
    ...inAddress(`subscription { ${alias}: postCreated { title } }`),
    headers: { ...headers, 'x-forwarded-for': `192.0.${++count}.1` },
  })
  const isRefused = async ({ any }: Events) => await any() !== undefined && await any() === undefined
  const strangers = [await subscribe(), await subscribe(), await subscribe()]
  t.ok(await isRefused(await subscribe()), 'a further stranger is asked to come back')
  const [same, user] = [await subscribe({}, 'a1'), await subscribe(usher.admin.headers)]
  t.ok(await isRefused(await subscribe(usher.admin.headers)), 'a user beyond the limit of all')
  await createPost(usher, usher.admin, 'Heard')
  for (const events of [...strangers, same, user]) t.match(await events.answers(1), [{ data: {} }])
  strangers[1]!.abort()
  await until('the place is free', async () => {
    const events = await subscribe()
    await createPost(usher, usher.admin, 'Heard by whoever is accepted')
    return !await isRefused(events)
  })
})

t.test('1.13 a failed handshake or subscription does not count toward the limits', async (t) => {
  const usher = await createUsher(t, { live: { connectionsPerNetwork: 1, subscriptionsPerNetwork: 1 } })
  const [host = '', port] = (await hostOf(usher)).split(':')
  const raw = connect(Number(port), host).resume()
  raw.write('GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  await once(raw, 'close')
  for (let round = 0; round < 2; round++) {
    const events = await openEvents(t, usher, asked('subscription { postCreated(after: "x") { title } }'))
    t.match(await events.answers(1), [{ errors: [{ extensions: { code: 'INVALID_INPUT' } }] }])
  }
  const socket = await (await openSocket(t, usher)).init()
  for (let round = 0; round < 2; round++) {
    t.match(await socket.run('subscription { postCreated(after: "x") { title } }'), {
      errors: [{ extensions: { code: 'INVALID_INPUT' } }],
    })
  }
  socket.start('1', POSTS)
  await socket.settle()
  await createPost(usher, usher.admin, 'Heard')
  t.same(await titles(socket, 1), ['Heard'])
})

t.test('1.13 event streams that were requested together on one connection end with it', async (t) => {
  const usher = await createUsher(t, { live: { connectionsPerNetwork: 3 } })
  const [host = '', port] = (await hostOf(usher)).split(':')
  const isRejected = async () => {
    const events = await openEvents(t, usher, inAddress(POSTS))
    if (events.response.ok) events.abort()
    return !events.response.ok
  }
  const request = `GET /graphql${inAddress(POSTS).query} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`
  for (const next of ['', 'GET /api/users HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n']) {
    const raw = connect(Number(port), host).resume()
    raw.write(request.repeat(3) + next)
    await until('all streams are open', isRejected)
    raw.resetAndDestroy()
    const others: Events[] = []
    await until('there is a place for three others', async () => {
      const events = await openEvents(t, usher, inAddress(POSTS))
      return events.response.ok && others.push(events) === 3
    })
    for (const events of others) events.abort()
    t.equal(others.length, 3)
  }
})

t.test('1.13 different subscriptions are limited; white space, comments and names make no difference', async (t) => {
  const usher = await createUsher(t, { live: { subscriptionsPerNetwork: 2, subscriptions: 3 } }, { trustProxy: true })
  const socket = await (await openSocket(t, usher)).init()
  const same = [
    POSTS, 'subscription A { postCreated { title } } # a comment',
    'subscription B { ...F } fragment F on Subscription { postCreated { title, } }',
    'query Q { me { id } } subscription C { ...F } fragment F on Subscription { postCreated { title } }',
  ]
  same.forEach((query, index) =>
    socket.start(String(index), query, query.startsWith('query') ? { operationName: 'C' } : {}))
  // A subscription with a fragment counts as a different one.
  t.match(await socket.run('subscription { postCreated { id } }'), {
    errors: [{ message: /too many different subscriptions/, extensions: { code: 'TOO_MANY_SUBSCRIPTIONS' } }],
  })
  await createPost(usher, usher.admin, 'To all')
  t.same(await titles(socket, 4), Array(4).fill('To all'))

  const elsewhere = (address: string) => openSocket(t, usher, { headers: { 'x-forwarded-for': address } })
  const other = await (await elsewhere('192.0.2.1')).init()
  other.start('1', POSTS)
  other.start('2', 'subscription { postCreated { content } }')
  t.same(await other.run('{ __typename }'), { data: { __typename: 'Query' } })
  const third = await (await elsewhere('198.51.100.1')).init()
  third.start('1', 'subscription { postCreated { createdAt } }')
  t.equal(await third.closed, 1013, 'all networks together')

  // A subscription that has ended no longer counts.
  for (const id of ['2', '3']) socket.stop(id)
  socket.start('5', 'subscription { postCreated { content } }')
  await socket.settle()
  await createPost(usher, usher.admin, 'Again')
  const heard = [await socket.next(), await socket.next(), await socket.next()].map(({ id }) => id).sort()
  t.same(heard, ['0', '1', '5'])
})

nightly('1.13 unread events are limited in bytes, and a few unread events are not lost', async (t) => {
  const usher = await createUsher(t, { live: { bufferedBytes: 70_000 } })
  const sql = openSql(t, usher)
  const author = await usher.createUser()
  const contents = (name: string) => `subscription { ${name}: postCreated(authorId: "${author.id}") { title content } }`
  const names = ['a', 'b', 'c']
  const sockets = await Promise.all(names.map(async () => (await openSocket(t, usher)).init()))
  for (const [index, socket] of sockets.entries()) {
    socket.start('1', contents(names[index]!))
    await socket.settle()
    socket.socket.pause()
  }
  await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${author.id}, n, ${'x'.repeat(65_000)} from generate_series(1, 250) n`
  for (const [index, socket] of sockets.entries()) {
    socket.socket.resume()
    const found: string[] = []
    while (found.length < 250) found.push((await socket.next()).payload!.data[names[index]!].title)
    t.same(found.map(Number).sort((a, b) => a - b), Array.from({ length: 250 }, (_, index) => index + 1), names[index]!)
  }
})

nightly('1.13 a subscriber that disconnects with unread events leaves nothing behind', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const query = 'subscription ($after: String) { postCreated(after: $after) { content } }'
  const start = { variables: { after: Buffer.alloc(12).toString('base64url') } }
  await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${usher.admin.id}, n, ${'x'.repeat(65_000)} from generate_series(1, 300) n`
  const socket = await (await openSocket(t, usher)).init()
  socket.socket.pause()
  for (let round = 0; round < 20; round++) {
    socket.start('1', query, start)
    socket.stop('1')
  }
  socket.start('1', query, start)
  const live = await (await openSocket(t, usher)).init()
  live.start('1', POSTS)
  await live.settle()
  await createPost(usher, usher.admin, 'Live')
  t.same(await titles(live, 1), ['Live'])
  socket.socket.resume()
  for (let count = 0; count < 100;) {
    if ((await socket.next()).payload!.data.postCreated.content.length === 65_000) count++
  }
})

t.test('1.13 if all subscribers together leave too much unread, the one with the most is disconnected', async (t) => {
  const usher = await createUsher(t, { live: { unreadBytes: 65_536 } })
  const sql = openSql(t, usher)
  const reading = await openEvents(t, usher, asked(POSTS))
  const [host = '', port] = (await hostOf(usher)).split(':')
  const body = JSON.stringify({ query: 'subscription { postCreated { content } }' })
  const deaf = connect(Number(port), host)
  deaf.write(
    `POST /graphql HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  )
  await once(deaf, 'data')
  deaf.pause()
  const closed = new Promise<void>((resolve) => deaf.once('close', () => resolve()).once('error', () => {}))
  await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${usher.admin.id}, '', ${'x'.repeat(65_000)} from generate_series(1, 300)`
  await reading.answers(300)
  const connections = () =>
    new Promise<number>((resolve) => { usher.app.server.getConnections((_, count) => resolve(count)) })
  await until('it is disconnected', async () => await connections() <= 1)
  deaf.resume()
  await closed
  await createPost(usher, usher.admin, 'After')
  t.match(await reading.answers(1), [{ data: { postCreated: { title: 'After' } } }])
})
