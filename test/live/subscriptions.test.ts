import postgres from 'postgres'
import t from 'tap'
import { WebSocket } from 'ws'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { createPost, openSocket, post, protocols, titles } from '../helpers/graphql.ts'
import { isNightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const POSTS = 'subscription { postCreated { title } }'
const by = (id: string) => `subscription { postCreated(authorId: "${id}") { title } }`
const CREATE = 'mutation ($title: String!) { createPost(input: { title: $title, content: "" }) { title } }'

t.test('postCreated', async (t) => {
  const usher = await sharedUsher()
  const otherNode = await sharedUsher(usher.options)
  const { admin } = usher
  const sql = openSql(t, usher)
  const author = await usher.createUser({ name: 'Author' })

  const subscribe = async (query = POSTS, protocol = protocols[0] as typeof protocols[number], node = usher) => {
    const socket = await (await openSocket(t, node, { protocol })).init(author.headers)
    socket.start('posts', query)
    await socket.settle()
    return socket
  }

  t.test('7.7 every subscriber receives every post, whichever node it was created on', async (t) => {
    const subscribers = await Promise.all(
      [usher, otherNode].flatMap((node) => protocols.map((protocol) => subscribe(POSTS, protocol, node)))
    )
    const writer = await (await openSocket(t, otherNode)).init(author.headers)
    await createPost(usher, admin, 'by HTTP')
    await createPost(otherNode, admin, 'by HTTP on the other node')
    t.same(await writer.run(CREATE, { variables: { title: 'by a socket' } }), {
      data: { createPost: { title: 'by a socket' } },
    })
    await sql`insert into posts (id, author_id, title, content) values (gen_random_uuid(), ${admin.id}, 'by SQL', '')`
    await sql.begin((sql) => [1, 2].map((number) =>
      sql`insert into posts (id, author_id, title, content) values (gen_random_uuid(), ${admin.id}, ${`in one transaction ${number}`}, '')`))
    for (const subscriber of subscribers) {
      t.same(await titles(subscriber, 6), [
        'by HTTP', 'by HTTP on the other node', 'by a socket', 'by SQL', 'in one transaction 1', 'in one transaction 2',
      ])
    }
  })

  t.test('7.7 no subscriber receives a post whose transaction was rolled back', async (t) => {
    const subscriber = await subscribe()
    await t.rejects(sql.begin(async (sql) => {
      await sql`insert into posts (id, author_id, title, content) values (gen_random_uuid(), ${admin.id}, 'Rolled back', '')`
      throw new Error('no')
    }))
    await createPost(usher, admin, 'Kept')
    t.same(await titles(subscriber, 1), ['Kept'])
  })

  t.test('7.7 a subscription to one author receives only that author\'s posts', async (t) => {
    const [his, upper, nobodys, none] = await Promise.all([
      subscribe(by(author.id)), subscribe(by(author.id.toUpperCase())), subscribe(by('nobody')), subscribe(by('')),
    ])
    const all = await subscribe('subscription ($id: ID) { postCreated(authorId: $id) { title } }')
    await createPost(usher, admin, 'Another')
    await createPost(usher, author, 'His')
    t.same(await titles(his!, 1), ['His'])
    t.same(await titles(upper!, 1), ['His'])
    t.same(await titles(all, 2), ['Another', 'His'])
    for (const socket of [nobodys!, none!]) {
      t.same(await socket.run('{ __typename }'), { data: { __typename: 'Query' } })
    }
  })

  t.test('7.7 posts arrive in the order of their commits', async (t) => {
    // With a new author, no earlier post can still be on its way to the other node.
    const author = await usher.createUser()
    const [here, there] =
      await Promise.all([subscribe(by(author.id)), subscribe(by(author.id), 'graphql-ws', otherNode)])
    const expected = Array.from({ length: 200 }, (_, index) => `Post ${index}`)
    for (const title of expected) await createPost(usher, author, title)
    t.same(await titles(here!, 200), expected)
    t.same(await titles(there!, 200), expected)
  })

  t.test('7.7 each of many posts created at once arrives exactly once', async (t) => {
    const subscribers = await Promise.all(Array.from({ length: 10 }, () => subscribe(by(author.id))))
    const expected = Array.from({ length: 300 }, (_, index) => `Many ${index}`).sort()
    await Promise.all(expected.map((title, index) => createPost(index % 2 ? usher : otherNode, author, title)))
    const [first, ...others] = await Promise.all(subscribers.map((subscriber) => titles(subscriber, 300)))
    t.same(first!.toSorted(), expected)
    for (const order of others) t.same(order, first)
  })

  t.test('7.7 a post can be selected with fields of its author and under an alias', async (t) => {
    const socket = await subscribe(
      `subscription Named ($first: Int = 1) { event: postCreated(authorId: "${author.id}") { id createdAt author { name posts(first: $first) { title } } } }`
    )
    const id = await createPost(usher, author, 'Nested')
    const { payload } = await socket.next()
    t.match(
      payload, { data: { event: { id, createdAt: /Z$/, author: { name: 'Author', posts: [{ title: 'Nested' }] } } } }
    )
    t.equal(payload!.errors, undefined)
  })

  t.test('7.3 the error of an event reveals nothing internal, and the next event arrives', async (t) => {
    const socket = await subscribe(
      `subscription { postCreated(authorId: "${author.id}") { title createdAt author { posts(first: 1000) { id } } } }`
    )
    const whole = await subscribe(`subscription { postCreated(authorId: "${author.id}") { title createdAt } }`)
    await createPost(usher, author)
    t.match((await socket.next()).payload, {
      data: null, errors: [{ message: 'first must be between 1 and 100', extensions: { code: 'INVALID_INPUT' } }],
    })
    await whole.next()
    await sql`insert into posts (id, author_id, title, content, created_at) values (gen_random_uuid(), ${author.id}, '', '', 'infinity')`
    t.match((await whole.next()).payload, {
      data: null, errors: [{ message: 'The server failed', extensions: { code: 'INTERNAL_ERROR' } }],
    })
    await createPost(usher, author, 'Next')
    t.match((await whole.next()).payload, { data: { postCreated: { title: 'Next' } } })
  })

  t.test('7.8 the limit of rows counts for each event separately', async (t) => {
    const reader = await usher.createUser()
    await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${reader.id}, '', '' from generate_series(1, 200)`
    const aliases = Array.from({ length: 40 }, (_, index) => `p${index}: posts(first: ${100 - index}) { id }`).join(' ')
    const socket = await subscribe(`subscription { postCreated(authorId: "${reader.id}") { author { ${aliases} } } }`)
    for (let round = 0; round < 4; round++) {
      await createPost(usher, reader)
      t.equal((await socket.next()).payload!.errors, undefined)
    }
  })

  t.test('7.7 subscribers that stop, close or disconnect leave nothing behind', async (t) => {
    const stay = await subscribe(by(author.id))
    for (let round = 0; round < 10; round++) {
      const leaving = await Promise.all(Array.from({ length: 20 }, () => subscribe(by(author.id))))
      leaving.forEach((socket, index) => {
        if (index % 4 === 0) socket.stop('posts')
        else if (index % 4 === 1) socket.socket.close()
        else if (index % 4 === 2) socket.socket.terminate()
        else socket.send('no JSON')
      })
      for (const socket of leaving.filter((_, index) => index % 4 !== 0)) await socket.closed
      await Promise.all(leaving.filter((_, index) => index % 4 === 0).map((socket) => socket.settle()))
    }
    await createPost(usher, author, 'To one')
    t.same(await titles(stay, 1), ['To one'])
  })

  if (isNightly) {
    t.test('7.7 a slow subscriber gets all posts in the end, without an effect on others', async (t) => {
      const quick = await subscribe(by(author.id))
      const contents = `subscription { postCreated(authorId: "${author.id}") { title content } }`
      const [reading, slow] = await Promise.all([subscribe(contents), subscribe(contents)])
      slow!.socket.pause()
      const content = 'x'.repeat(65_000)
      for (let round = 0; round < 8; round++) {
        await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${author.id}, ${`Flood ${round}`}, ${content} from generate_series(1, 100)`
        for (const socket of [quick, reading!]) t.same(await titles(socket, 100), Array(100).fill(`Flood ${round}`))
      }
      slow!.socket.resume()
      for (let round = 0; round < 8; round++) t.same(await titles(slow!, 100), Array(100).fill(`Flood ${round}`))
      await createPost(usher, author, 'After')
      for (const socket of [quick, reading!, slow!]) t.same(await titles(socket, 1), ['After'])
    })
  }

  if (isNightly) {
    t.test('7.7 a subscriber that reads receives thousands of posts created at once', async (t) => {
      const subscribers = await Promise.all([subscribe(by(author.id)), subscribe(by(author.id), 'graphql-ws')])
      await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${author.id}, n, 'Words' from generate_series(1, 3000) n`
      const expected = Array.from({ length: 3000 }, (_, index) => String(index + 1))
      for (const subscriber of subscribers) {
        t.same((await titles(subscriber, 3000)).sort((a, b) => Number(a) - Number(b)), expected)
      }
    })
  }

  t.test('7.7 a client that subscribes but does not read is disconnected', async (t) => {
    const socket = await subscribe(by('nobody'))
    await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${admin.id}, '', ${'x'.repeat(60_000)} from generate_series(1, 100)`
    socket.socket.pause()
    for (let id = 0; id < 9; id++) {
      socket.start(String(id), `{ posts(authorId: "${admin.id}", first: 100) { nodes { content } } }`)
    }
    // The client only detects that the connection is closed when it writes.
    await until('the server has hung up', () => {
      socket.socket.ping()
      return socket.socket.readyState !== WebSocket.OPEN
    })
    socket.socket.resume()
    t.equal(await socket.closed, 1006)
  })
})

t.test('7.7 a node without subscribers reads no posts', async (t) => {
  const statements: string[] = []
  const usher = await sharedUsher()
  const client = postgres(
    await testDatabaseUrl(), { max: 4, onnotice: () => {}, debug: (_, text) => { statements.push(text) } }
  )
  t.teardown(() => client.end())
  const watched = await createUsher(t, { ...usher.options, databaseUrl: undefined, sql: client })
  const reads = () => statements.filter((text) => text.includes('"position" >')).length

  const socket = await (await openSocket(t, watched)).init()
  socket.start('1', POSTS)
  await socket.settle()
  await createPost(usher, usher.admin, 'Heard')
  t.same(await titles(socket, 1), ['Heard'])
  socket.stop('1')
  await socket.settle()
  const before = reads()
  t.ok(before > 0)
  const user = await usher.createUser()
  await createPost(usher, usher.admin, 'Unheard')
  // When the token is rejected, the node has also received the notification of the post, which was sent earlier.
  await usher.inject('POST', '/api/auth/logout', { headers: user.headers })
  while ((await post(watched, { query: '{ __typename }' }, user)).data) await new Promise(setImmediate)
  t.equal(reads(), before)
  socket.start('2', POSTS)
  await socket.settle()
  await createPost(usher, usher.admin, 'Heard again')
  t.same(await titles(socket, 1), ['Heard again'])
  t.ok(reads() > before)

  // This client disconnects while its subscription is being created.
  const sql = openSql(t, usher)
  socket.stop('2')
  await socket.settle()
  await sql.begin(async (locked) => {
    await locked`lock table posts in access exclusive mode`
    const vanishing = await (await openSocket(t, watched)).init()
    vanishing.start('3', POSTS)
    await until('its statement waits', async () =>
      (await sql`select from pg_stat_activity where wait_event_type = 'Lock' and query like ${`%"${usher.options.schema}"."posts"%`}`).length > 0)
    vanishing.socket.terminate()
    await until('the node has seen it', () =>
      new Promise((resolve) => { watched.app.server.getConnections((_, count) => resolve(count === 1)) }))
  })
  await socket.settle()
  const least = reads()
  await createPost(usher, usher.admin, 'Unheard again')
  const later = await usher.createUser()
  await usher.inject('POST', '/api/auth/logout', { headers: later.headers })
  while ((await post(watched, { query: '{ __typename }' }, later)).data) await new Promise(setImmediate)
  // The first subscriber reads once, before the node detects that it has disconnected.
  t.ok(reads() <= least + 1)
})

t.test('7.8 a subscription is executed only as long as it has subscribers, and once for all of them', async (t) => {
  const node = await createUsher(t)
  const running = async () => {
    const metrics = await node.app.usher.metrics()
    const [sample] = metrics.find(({ name }) => name === 'usher_shared_subscriptions')!.samples
    return sample && 'value' in sample ? sample.value : undefined
  }
  const sockets = await Promise.all([openSocket(t, node), openSocket(t, node)])
  for (const socket of sockets) {
    await socket.init()
    socket.start('titles', POSTS)
    await socket.settle()
  }
  await until('both share an execution', async () => await running() === 1)
  sockets[0]!.stop('titles')
  await sockets[0]!.settle()
  t.equal(await running(), 1, 'the other one still has it')
  sockets[1]!.stop('titles')
  await sockets[1]!.settle()
  await until('nothing is executed', async () => await running() === 0)
})
