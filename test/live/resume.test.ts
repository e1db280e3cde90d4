import t from 'tap'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { createPost, openSocket, post, protocols, titles, type TestSocket } from '../helpers/graphql.ts'
import { isNightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

const AFTER = 'subscription ($after: String) { postCreated(after: $after) { title cursor } }'

const take = async (socket: TestSocket, count: number) => {
  const found: { title: string, cursor: string }[] = []
  while (found.length < count) found.push((await socket.next()).payload!.data.postCreated)
  return found
}
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => String(from + index))

t.test('7.7 a subscription resumes from a cursor', async (t) => {
  const usher = await sharedUsher()
  const otherNode = await sharedUsher(usher.options)
  const { admin } = usher
  const sql = openSql(t, usher)
  const author = await usher.createUser()
  const insert = (from: number, to: number, { authorId = admin.id, content = '' } = {}) =>
    sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${authorId}, n, ${content} from generate_series(${from}::int, ${to - 1}::int) n`

  const subscribe = async (
    after?: string | null, { node = usher, query = AFTER, protocol = protocols[0] as typeof protocols[number] } = {}
  ) => {
    const socket = await (await openSocket(t, node, { protocol })).init()
    socket.start('1', query, { variables: { after } })
    return socket
  }
  const latest = async () =>
    (await post(usher, { query: '{ posts(first: 1) { pageInfo { startCursor } } }' })).data.posts.pageInfo.startCursor

  t.test('7.7 it gets missed posts, then new ones, on any node and over any protocol', async (t) => {
    await insert(0, 3)
    const first = await subscribe()
    await first.settle()
    await insert(3, 6)
    const seen = await take(first, 2)
    first.socket.terminate()
    await insert(6, 9)
    for (const node of [usher, otherNode]) {
      for (const protocol of protocols) {
        const again = await subscribe(seen.at(-1)!.cursor, { node, protocol })
        t.same(await titles(again, 4), range(5, 9))
      }
    }
  })

  t.test('7.7 the cursor of the newest page of a list leads to the posts that follow', async (t) => {
    const { posts: { nodes, pageInfo } } =
      (await post(usher, { query: '{ posts(first: 2) { nodes { cursor title } pageInfo { startCursor } } }' })).data
    t.equal(nodes[0].cursor, pageInfo.startCursor)
    const socket = await subscribe(pageInfo.startCursor)
    await createPost(otherNode, author, 'Next')
    const [next] = await take(socket, 1)
    t.equal(next!.title, 'Next')
    const { data } = await post(usher, {
      query: 'query ($after: String) { posts(first: 2, after: $after) { nodes { cursor } } }',
      variables: { after: next!.cursor },
    })
    t.same(
      data.posts.nodes.map(({ cursor }: { cursor: string }) => cursor),
      nodes.map(({ cursor }: { cursor: string }) => cursor)
    )
  })

  if (isNightly) {
    t.test('7.7 it gets thousands of missed posts while new ones are created', async (t) => {
      const from = await latest()
      await insert(0, 3000)
      const sockets = await Promise.all(
        Array.from({ length: 5 }, (_, index) => subscribe(from, { node: index % 2 ? usher : otherNode }))
      )
      for (let at = 3000; at < 3500; at += 100) await insert(at, at + 100)
      for (const socket of sockets) t.same(await titles(socket, 3500), range(0, 3500))
      const middle = await subscribe(from)
      const { cursor } = (await take(middle, 1700)).at(-1)!
      const tail = await subscribe(cursor)
      t.same(await titles(tail, 1800), range(1700, 3500))
      await insert(3500, 3501)
      for (const socket of [...sockets, tail]) t.same(await titles(socket, 1), ['3500'])
    })
  }

  t.test('7.7 with authorId it gets the author\'s missed posts, even if a node no longer keeps them in memory', async (t) => {
    const from = await latest()
    const live = await subscribe(
      null, { query: `subscription { postCreated(authorId: "${author.id}") { title cursor } }` }
    )
    await live.settle()
    await insert(0, 120, { content: 'x'.repeat(60_000) })
    await insert(120, 122, { authorId: author.id })
    await insert(122, 300, { content: 'x'.repeat(60_000) })
    const his = await subscribe(from, {
      query: `subscription ($after: String) { postCreated(authorId: "${author.id}", after: $after) { title cursor } }`,
    })
    for (const socket of [his, live]) t.same(await titles(socket, 2), ['120', '121'])
    await insert(300, 301, { authorId: author.id })
    for (const socket of [his, live]) t.same(await titles(socket, 1), ['300'])
    const all = await subscribe(from)
    t.same(await titles(all, 301), range(0, 301))
  })

  t.test('7.7 with an unknown authorId it receives nothing', async (t) => {
    const socket = await subscribe(await latest(), {
      query: 'subscription ($after: String) { postCreated(authorId: "nobody", after: $after) { title } }',
    })
    await insert(0, 1)
    t.match(await socket.run('{ __typename }'), { data: { __typename: 'Query' } })
  })

  t.test('7.7 posts that have been deleted are left out', async (t) => {
    const from = await latest()
    await insert(0, 4, { content: 'doomed' })
    t.equal((await sql`delete from posts where title in ('1', '3') and content = 'doomed'`).count, 2)
    const socket = await subscribe(from)
    t.same(await titles(socket, 2), ['0', '2'])
    const last = await subscribe(await latest())
    await sql`delete from posts where position = (select max(position) from posts)`
    const same = await subscribe(await latest())
    await createPost(usher, author, 'After')
    for (const some of [socket, last, same]) t.same(await titles(some, 1), ['After'])
  })

  t.test('7.7 a transaction that commits late does not make a subscriber miss its post', async (t) => {
    const socket = await subscribe(await latest())
    const late = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const transaction = sql.begin(async (sql) => {
      await sql`insert into posts (id, author_id, title, content) values (gen_random_uuid(), ${admin.id}, 'Late', '')`
      begun.resolve()
      await late.promise
    })
    await begun.promise
    const others = [1, 2].map((number) => createPost(usher, author, `Other ${number}`))
    late.resolve()
    await Promise.all([transaction, ...others])
    const [first, ...rest] = await titles(socket, 3)
    t.equal(first, 'Late')
    t.same(rest.sort(), ['Other 1', 'Other 2'])
  })

  t.test('7.7 a cursor that is malformed or was never issued is an error', async (t) => {
    const beyond = Buffer.from(await latest(), 'base64url')
    beyond.writeBigUInt64BE(2n ** 62n)
    // This cursor belongs to an epoch that has not begun.
    const future = Buffer.alloc(12)
    future.writeUInt32BE(2 ** 31, 8)
    const neverGiven = [beyond, future].map((octets) => octets.toString('base64url'))
    const users = await post(usher, { query: '{ users(first: 1) { pageInfo { startCursor } } }' })
    for (const after of [
      '', 'x', `${await latest()}=`, `${'A'.repeat(15)}\n`, '_'.repeat(16), ...neverGiven,
      users.data.users.pageInfo.startCursor,
    ]) {
      const socket = await subscribe(after)
      t.match(await socket.next(), {
        type: 'error',
        id: '1',
        payload: [{ message: 'after must be the cursor of a post', extensions: { code: 'INVALID_INPUT' } }],
      }, after)
      // A list over HTTP rejects the same malformed cursors.
      if (!neverGiven.includes(after)) {
        t.match(
          await post(
            usher, { query: 'query ($after: String) { posts(after: $after) { nodes { id } } }', variables: { after } }
          ),
          { errors: [{ message: 'after must be the cursor of a post' }] }
        )
      }
    }
  })
})

t.test('7.7 a subscription can start at the beginning while there are no posts', async (t) => {
  const usher = await createUsher(t)
  const socket = await (await openSocket(t, usher)).init()
  socket.start('1', AFTER)
  await socket.settle()
  await createPost(usher, usher.admin, 'The first')
  const [{ title, cursor }] = await take(socket, 1) as [{ title: string, cursor: string }]
  t.equal(title, 'The first')
  t.equal((await post(usher, { query: '{ posts { nodes { cursor } } }' })).data.posts.nodes[0].cursor, cursor)
})
