import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { audiences } from '../../app.ts'
import { createUsher, sharedUsher, type TestUsher } from '../helpers/app.ts'
import { hostOf, openSocket, post, protocols, type Answer } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const ATTACK = '{ posts(first: 100) { nodes { author { posts(first: 99) { content } } } } }'
const aliases = (count: number, field: string) =>
  Array.from({ length: count }, (_, index) => `a${index}: ${field}`).join(' ')

/** Executes a query as an event stream and returns the response in its event. */
async function ask (usher: TestUsher, query: string): Promise<Answer> {
  const response = await usher.inject(
    'POST', '/graphql', { headers: { accept: 'text/event-stream' }, payload: { query } }
  )
  return JSON.parse(/^event: next\ndata: (.*)$/m.exec(response.body)![1]!)
}

/** Replaces all users except admins by `authors` users with `posts` posts each, which all have this content. */
async function fill (
  t: Test, usher: TestUsher, { authors, posts, content }: { authors: number, posts: number, content: string }
): Promise<void> {
  const sql = openSql(t, usher)
  await sql`delete from users where role = 'user'`
  await sql`insert into users (id, name, email, role) select gen_random_uuid(), 'User ' || n, n || '@example.com', 'user' from generate_series(1, ${authors}) n`
  await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), id, 'Post ' || n, ${content} from users, generate_series(1, ${posts}) n where role = 'user'`
}

/** Returns the bytes of the large results that are being read or sent. */
async function resultBytesOf ({ app }: TestUsher): Promise<number> {
  const { samples } = (await app.usher.metrics()).find(({ name }) => name === 'usher_graphql_result_bytes')!
  return (samples[0] as { value: number }).value
}

/** Creates users until there are a hundred. */
async function fillPage (t: Test, usher: TestUsher): Promise<void> {
  await openSql(t, usher)`insert into users (id, name, email, role) select gen_random_uuid(), 'User ' || n, n || '@example.com', 'user' from generate_series(1, 99) n`
}

const usher = await createUsher(t)
const limited = await createUsher(t, { graphql: { maxResponseBytes: 1024 * 1024 } })

t.test('7.8 an operation over the cost budget is rejected before it is executed, over every transport', async (t) => {
  const { admin } = usher
  const refusal = {
    errors: [{
      message: 'The operation costs more than 12500: ask for fewer rows or fields',
      extensions: { code: 'OPERATION_TOO_COSTLY' },
    }],
  }
  const sized = 'query Q($first: Int) { users(first: 100) { nodes { posts(first: $first) { id } } } }'
  const mutation =
    'mutation { createPost(input: { title: "Never", content: "" }) { author { posts(first: 100) { author { posts(first: 100) { id } } } } } }'
  const allowed = '{ users { nodes { id name posts { id title content } } } }'

  for (let round = 0; round < 3; round++) {
    t.match(await post(usher, { query: ATTACK }), { data: null, ...refusal }, 'by HTTP')
    t.match(
      await post(usher, { query: sized, operationName: 'Q', variables: { first: 100 } }),
      refusal,
      'a page that is too large'
    )
    t.equal(
      (await post(usher, { query: sized, operationName: 'Q', variables: { first: 10 } })).errors,
      undefined,
      'a small one'
    )
    t.match(await post(usher, { query: mutation }, admin), refusal, 'a mutation')
    t.match(await ask(usher, ATTACK), refusal, 'by an event stream')
    t.equal((await post(usher, { query: allowed })).errors, undefined)
  }
  for (const protocol of protocols) {
    const socket = await (await openSocket(t, usher, { protocol })).init(admin.headers)
    for (const query of [
      ATTACK,
      mutation,
      'subscription { postCreated { author { posts(first: 99) { author { posts(first: 99) { id } } } } } }',
    ]) {
      t.match(await socket.run(query), refusal, query)
    }
    t.match(await socket.run(sized, { operationName: 'Q', variables: { first: 100 } }), refusal)
    t.equal((await socket.run(allowed)).errors, undefined)
  }
  t.same((await post(usher, { query: '{ posts { nodes { id } } }' })).data.posts.nodes, [], 'nothing was written')
})

t.test('7.8 a response is limited in bytes, aliases included', async (t) => {
  const usher = limited
  await fill(t, usher, { authors: 2, posts: 10, content: 'x'.repeat(50_000) })
  const message = 'The response would be larger than 1048576 bytes: ask for fewer rows or fields'
  const refusal = { errors: [{ message, extensions: { code: 'OPERATION_TOO_COSTLY' } }] }
  const socket = await (await openSocket(t, usher)).init()
  const { data: { posts: { nodes: [{ id }] } } } = await post(usher, { query: '{ posts(first: 1) { nodes { id } } }' })

  for (let round = 0; round < 3; round++) {
    for (const query of [
      '{ posts(first: 12) { nodes { content } edges { node { ...A } } } } fragment A on Post { content }',
      `{ posts(first: 10) { nodes { ${aliases(3, 'content')} } } }`,
      '{ users { nodes { posts { author { posts { content } } } } } }'.replace('posts {', 'posts(first: 2) {'),
      `{ ${aliases(30, `post(id: "${id}") { content }`)} }`,
    ]) {
      t.match(await post(usher, { query }), refusal, query)
      t.match(await socket.run(query), refusal, query)
    }
    for (const answer of [
      post(usher, { query: '{ posts { nodes { content } } }' }),
      ask(usher, '{ posts { nodes { content } } }'),
      socket.run('{ posts { nodes { content } } }'),
    ]) {
      const { data, errors } = await answer
      t.equal(errors, undefined)
      t.same(data.posts.nodes, Array.from({ length: 20 }, () => ({ content: 'x'.repeat(50_000) })))
    }
  }
})

t.test('7.8 JSON escapes count toward the response limit, and a large response is complete JSON', async (t) => {
  const usher = limited
  const content = '\n"漢'.repeat(8000)
  await fill(t, usher, { authors: 1, posts: 20, content })
  const query = (first: number) =>
    `{ posts(first: ${first}) { nodes { id content createdAt author { posts(first: 1) { title } } } pageInfo { endCursor hasNextPage } } none: post(id: "x") { id } empty: posts(authorId: "x") { nodes { id } } }`
  t.match(
    await post(usher, { query: query(20) }), { data: null, errors: [{ extensions: { code: 'OPERATION_TOO_COSTLY' } }] }
  )
  const { data, errors } = await post(usher, { query: query(10) })
  t.equal(errors, undefined)
  t.equal(data.posts.nodes.length, 10)
  t.match(data, { none: null, empty: { nodes: [] }, posts: { pageInfo: { hasNextPage: true } } })
  for (const node of data.posts.nodes) t.match(node, { content, author: { posts: [{ title: /^Post/ }] } })
})

nightly('7.8 the contents of many authors are read correctly in several statements', async (t) => {
  const usher = await createUsher(t, { graphql: { maxResponseBytes: 32 * 1024 * 1024 } })
  await fill(t, usher, { authors: 5, posts: 50, content: 'x'.repeat(65_000) })
  const { data, errors } = await post(usher, { query: '{ users { nodes { role posts { content } } } }' })
  t.equal(errors, undefined)
  // The ids of the authors are random, so the admin may be anywhere among them.
  t.same(data.users.nodes.map(({ role, posts }: { role: string, posts: object[] }) =>
    posts.length - (role === 'user' ? 50 : 0)), [0, 0, 0, 0, 0, 0])
  const contents = data.users.nodes.flatMap(({ posts }: { posts: { content: string }[] }) => posts)
  t.same(new Set(contents.map(({ content }: { content: string }) => content.length)), new Set([65_000]))
})

t.test('7.8 the contents of a response that is too large are not read', async (t) => {
  await fill(t, usher, { authors: 1, posts: 50, content: 'x'.repeat(65_000) })
  const read = async () => {
    const items = (await usher.app.usher.metrics()).find(({ name }) => name === 'usher_batch_items')!
    return items.samples.filter(({ labels }) => labels['batch'] === 'posts.read-large')
      .reduce((sum, sample) => sum + ('sum' in sample ? sample.sum : NaN), 0)
  }
  const before = await read()
  for (const query of [
    '{ posts(first: 50) { nodes { author { posts(first: 50) { content } } } } }',
    `{ ${aliases(3, 'posts(first: 50) { nodes { content } }')} }`,
  ]) {
    t.match(await post(usher, { query }), { data: null, errors: [{ extensions: { code: 'OPERATION_TOO_COSTLY' } }] })
    t.equal(await read(), before, query)
  }
  t.equal((await post(usher, { query: '{ posts(first: 50) { nodes { content } } }' })).errors, undefined)
  t.equal(await read(), before + 50)
})

nightly('1.13 large responses share a memory budget; those beyond it get OVERLOADED, and the budget is released', async (t) => {
  const usher = await sharedUsher({ graphql: { bufferedBytes: 1024 * 1024 } })
  await fill(t, usher, { authors: 1, posts: 14, content: 'x'.repeat(65_000) })
  const query = '{ posts(first: 14) { nodes { content } } }'
  const socket = await (await openSocket(t, usher)).init()
  const answers = await Promise.all([
    ...Array.from({ length: 5 }, () => post(usher, { query })), socket.run(query), ask(usher, query),
  ])
  const refused = answers.filter(({ errors }) => errors)
  t.ok(refused.length > 0 && refused.length < answers.length)
  for (const { errors } of refused) {
    t.match(errors, [{ message: 'The server is busy, try again', extensions: { code: 'OVERLOADED' } }])
  }
  for (let round = 0; round < 5; round++) {
    t.equal((await post(usher, { query })).errors, undefined)
    t.equal((await ask(usher, query)).errors, undefined)
    t.equal((await socket.run(query)).errors, undefined)
  }
})

nightly('1.13 the memory budget is released if a response waits behind an event stream and the connection is reset', async (t) => {
  const usher = await sharedUsher({ graphql: { bufferedBytes: 1024 * 1024 } })
  await fill(t, usher, { authors: 1, posts: 14, content: 'x'.repeat(65_000) })
  const query = '{ posts(first: 14) { nodes { content } } }'
  const isServed = async () => (await post(usher, { query })).errors === undefined
  const [host = '', port] = (await hostOf(usher)).split(':')
  const body = JSON.stringify({ query })
  const client = connect(Number(port), host)
  client.write(
    'GET /graphql?query=subscription%7BpostCreated%7Bid%7D%7D HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n' +
    `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}` +
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n')
  // Another request would compete for the budget, so it is not what finds out.
  await until('the response has taken the budget', async () => await resultBytesOf(usher) > 900_000)
  t.notOk(await isServed())
  client.resetAndDestroy()
  await until('the budget is released', isServed)
})

nightly('1.13 responses that wait behind an event stream take a share of the memory budget, and other addresses are served', async (t) => {
  const usher = await createUsher(t, { graphql: { bufferedBytes: 4 * 1024 * 1024, maxResponseBytes: 1024 * 1024 } })
  await fill(t, usher, { authors: 1, posts: 14, content: 'x'.repeat(65_000) })
  const payload = { query: '{ posts(first: 14) { nodes { content } } }' }
  const codesFor = async (remoteAddress: string): Promise<string[]> => {
    const { errors = [] } = (await usher.app.inject({ method: 'POST', url: '/graphql', remoteAddress, payload })).json()
    return errors.map(({ extensions }: { extensions: { code: string } }) => extensions.code)
  }
  const [host = '', port] = (await hostOf(usher)).split(':')
  const client = connect(Number(port), host)
  t.teardown(() => client.destroy())
  const body = JSON.stringify(payload)
  client.write(
    'GET /graphql?query=subscription%7BpostCreated%7Bid%7D%7D HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n')
  // Without a stream, which a busy machine may refuse, nothing would wait.
  const [head] = await once(client, 'data') as [Buffer]
  t.match(`${head}`, /^HTTP\/1\.1 200 /)
  client.write(
    `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  await until('the response has taken the share', async () => await resultBytesOf(usher) > 900_000)
  t.same(await Promise.all(['192.0.2.1', '198.51.100.1', '127.0.0.1'].map(codesFor)), [[], [], ['OVERLOADED']])
})

t.test('1.13 costly operations all get a response, while cheap ones are served', async (t) => {
  const usher = await createUsher(t, { graphql: { maxCost: 1000 } })
  await fill(t, usher, { authors: 5, posts: 5, content: '' })
  const socket = await (await openSocket(t, usher)).init()
  const costly = '{ users(first: 10) { nodes { id posts(first: 30) { id title } } } }'
  const answers = await Promise.all([
    ...Array.from({ length: 20 }, () => post(usher, { query: costly })),
    socket.run(costly),
    ...Array.from({ length: 20 }, () => post(usher, { query: '{ me { id } }' })),
  ])
  for (const { errors } of answers) t.equal(errors, undefined)
})

t.test('1.13 an event that is too large becomes an error for its subscriber', async (t) => {
  const usher = await createUsher(t, { graphql: { maxResponseBytes: 64 * 1024 } })
  const socket = await (await openSocket(t, usher)).init()
  socket.start('1', `subscription { postCreated { title author { posts(first: 50) { ${aliases(40, 'title')} } } } }`)
  await socket.settle()
  await fill(t, usher, { authors: 1, posts: 1, content: '' })
  t.match((await socket.next()).payload, { data: { postCreated: { title: 'Post 1' } } })
  const sql = openSql(t, usher)
  await sql`update posts set title = repeat('x', 200)`
  await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), author_id, repeat('x', 200), '' from posts, generate_series(1, 20)`
  for (let event = 0; event < 20; event++) {
    t.match((await socket.next()).payload, { data: null, errors: [{ extensions: { code: 'OPERATION_TOO_COSTLY' } }] })
  }
})

t.test('1.13 new documents are limited per network, known documents are not', async (t) => {
  const usher = await createUsher(t, { graphql: { documents: { burst: 5, perMinute: 0.01 } } })
  const known = await post(usher, { query: '{ me { id } }' })
  t.equal(known.errors, undefined)
  const refusal = {
    errors: [{
      message: 'Too many new GraphQL documents: use variables, or try again later',
      extensions: { code: 'TOO_MANY_DOCUMENTS' },
    }],
  }
  const answers: Answer[] = []
  for (let index = 0; index < 30; index++) answers.push(await post(usher, { query: `{ a${index}: me { id } }` }))
  t.equal(answers[0]!.errors, undefined)
  t.match(answers.at(-1), refusal)
  t.match(await ask(usher, '{ stream: me { id } }'), refusal)
  t.match(await ask(usher, 'subscription { stream: postCreated { id } }'), refusal)
  const socket = await (await openSocket(t, usher)).init()
  t.match(await socket.run('{ socket: me { id } }'), refusal)
  t.match(await socket.run('subscription { socket: postCreated { id } }'), refusal)
  t.same(await post(usher, { query: '{ me { id } }' }), known)
  const elsewhere = await usher.app.inject({
    method: 'POST', url: '/graphql', remoteAddress: '192.0.2.1', payload: { query: '{ b: me { id } }' },
  })
  t.same(elsewhere.json(), { data: { b: null } }, 'another network')
})

t.test('1.13 new documents are limited for all networks together', async (t) => {
  const usher = await createUsher(t, { graphql: { allDocuments: { burst: 5, perMinute: 0.01 } } })
  const answers: Answer[] = []
  for (let index = 0; index < 30; index++) {
    const response = await usher.app.inject({
      method: 'POST',
      url: '/graphql',
      remoteAddress: `192.0.2.${index}`,
      payload: { query: `{ a${index}: me { id } }` },
    })
    answers.push(response.json())
  }
  t.equal(answers[0]!.errors, undefined)
  t.match(answers.at(-1), { errors: [{ extensions: { code: 'TOO_MANY_DOCUMENTS' } }] })
})

t.test('7.8 a page of an invalid size costs as much as a usual one, so that thousands of fields cannot fail for the price of their parents', async (t) => {
  const refusal = { data: null, errors: [{ extensions: { code: 'OPERATION_TOO_COSTLY' } }] }
  const sized = `query ($first: Int) { users(first: 100) { nodes { ${aliases(50, 'posts(first: $first) { id }')} } } }`
  const socket = await (await openSocket(t, usher)).init()
  for (const first of [-1, 0, -1e9]) {
    for (let round = 0; round < 3; round++) {
      t.match(await post(usher, { query: sized, variables: { first } }), refusal, `$first: ${first}`)
      t.match(await post(usher, { query: sized.replace('Int', `Int = ${first}`) }), refusal, `$first = ${first}`)
      t.match(
        await post(usher, { query: sized.replace(/^query \(.*?\)/, '').replaceAll('$first', `${first}`) }),
        refusal,
        `first: ${first}`
      )
      t.match(await socket.run(sized, { variables: { first } }), { errors: refusal.errors })
    }
    t.match(await post(usher, { query: `{ users { nodes { posts(first: ${first}) { id } } } }` }), {
      errors: [{ message: 'first must be between 1 and 100', path: ['users', 'nodes', 0, 'posts'] }],
    })
  }
})

nightly('11.1 one error says that the posts of a hundred users may not be read, wherever it is in the document', async (t) => {
  const usher = await createUsher(t, { policy: { 'posts:read': audiences.members } })
  await fillPage(t, usher)
  const lines = '\n'.repeat(9900)
  for (const lineBreak of ['\n', '\r', '\r\n']) {
    const query = `${lines}{ users(first: 100) { nodes {${lineBreak}  ${aliases(40, 'posts(first: 1) { id }')} } } }`
    for (let round = 0; round < 3; round++) {
      const { data, errors } = await post(usher, { query })
      t.equal(data, null)
      const line = query.split(/\r\n|[\n\r]/).length
      t.match(
        errors,
        [{ message: 'A bearer token is required', path: ['users', 'nodes', 0, 'a0'], locations: [{ line, column: 3 }] }]
      )
      t.equal(errors!.length, 1)
    }
    t.equal((await post(usher, { query }, usher.admin)).errors, undefined)
  }
})

t.test('1.13 a document has a limited number of lines, and its response a limited number of errors', async (t) => {
  t.match(await post(usher, { query: `{${'\n'.repeat(10_000)} ${'x '.repeat(150)} }` }), {
    errors: [{ message: 'The document has more than 10000 lines', extensions: { code: 'GRAPHQL_LIMIT_EXCEEDED' } }],
  })
  for (const lineBreak of ['\n', '\r\n', '\r']) {
    t.equal((await post(usher, { query: `{${lineBreak.repeat(9000)} me { id } }` })).errors, undefined)
  }
  t.equal((await post(
    usher, { query: `{ ${Array.from({ length: 150 }, (_, index) => `x${index}`).join(' ')} }` }
  )).errors!.length, 11)
})
