import { getIntrospectionQuery } from 'graphql'
import postgres from 'postgres'
import t from 'tap'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { createPost, post } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'

const UNKNOWN = '018f0000-0000-7000-8000-000000000000'

const usher = await createUsher(t)
// The statements that the app `watched` has sent to the database.
const statements: string[] = []
const client = postgres(
  await testDatabaseUrl(), { max: 4, onnotice: () => {}, debug: (_, text) => { statements.push(text) } }
)
t.teardown(() => client.end())
const watched = await createUsher(t, { sql: client, databaseUrl: undefined })

t.test('queries', async (t) => {
  const { admin } = usher
  const owner = await usher.createUser({ name: 'Owner', email: 'Owner@example.com' })
  const id = await createPost(usher, owner, 'Mine')

  t.test('7.5 user(id) of an unknown user fails, and errors[0].message contains User not found (given)', async (t) => {
    for (const unknown of [UNKNOWN, 'x', '', '0', "' or 1=1", '\\u0000', 'x'.repeat(5000)]) {
      const { data, errors } = await post(usher, { query: `{ user(id: "${unknown}") { id name } }` })
      t.same(data, { user: null })
      t.match(errors![0]!.message, /User not found/)
      t.same(errors![0]!.extensions, { code: 'USER_NOT_FOUND' })
    }
  })

  t.test('7.3 a user has its fields and no others, and the id is not case-sensitive', async (t) => {
    for (const asked of [owner.id, owner.id.toUpperCase()]) {
      const { data, errors } = await post(
        usher, { query: `{ user(id: "${asked}") { id name email role createdAt posts { id title content } } }` }
      )
      t.equal(errors, undefined)
      t.same(data.user, {
        id: owner.id,
        name: 'Owner',
        email: 'Owner@example.com',
        role: 'user',
        createdAt: data.user.createdAt,
        posts: [{ id, title: 'Mine', content: 'Words' }],
      })
      t.match(data.user.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    }
    t.match(
      (await post(usher, { query: '{ me { passwordHash } }' })).errors,
      [{ message: 'Cannot query field "passwordHash" on type "User".' }]
    )
  })

  t.test('7.3 an unknown post is null', async (t) => {
    t.same(await post(usher, {
      query: `{ a: post(id: "${UNKNOWN}") { id } b: post(id: "x") { id } c: post(id: "${id.toUpperCase()}") { id author { id } } }`,
    }), {
      data: { a: null, b: null, c: { id, author: { id: owner.id } } },
    })
  })

  t.test('7.3 me is the actor, or null without a token', async (t) => {
    t.same(await post(usher, { query: '{ me { id } }' }, owner), { data: { me: { id: owner.id } } })
    t.same(await post(usher, { query: '{ me { id } }' }), { data: { me: null } })
  })

  t.test('7.3 users can be filtered by role, and posts by author', async (t) => {
    const names = async (args: string) =>
      (await post(usher, { query: `{ users${args} { nodes { name } } }` })).data.users.nodes.map(
        ({ name }: { name: string }) => name
      )
    t.same(await names('(role: "admin")'), ['Admin'])
    t.same(await names('(role: "user")'), ['Owner'])
    t.same(await names('(role: "nobody")'), [])
    t.same(await names('(role: null, first: null, after: null)'), ['Owner', 'Admin'])
    t.match(
      (await post(usher, { query: '{ users(role: "\\u0000") { nodes { id } } }' })).errors,
      [{ message: 'role must not contain control characters' }]
    )
    const titles = async (author: string) =>
      (await post(usher, { query: `{ posts(authorId: ${author}) { nodes { title } } }` })).data.posts.nodes
    t.same(await titles(`"${owner.id.toUpperCase()}"`), [{ title: 'Mine' }])
    t.same(await titles(`"${admin.id}"`), [])
    t.same(await titles('"x"'), [])
    t.same(await titles('null'), [{ title: 'Mine' }])
  })

  t.test('7.7 introspection shows postCreated in the Subscription type (given)', async (t) => {
    const { data, errors } = await post(usher, { query: '{ __schema { subscriptionType { name fields { name } } } }' })
    t.equal(errors, undefined)
    t.same(data.__schema.subscriptionType, {
      name: 'Subscription', fields: [{ name: 'postCreated' }, { name: 'postChanged' }],
    })
    const byType = await post(usher, {
      query: '{ __type(name: "Subscription") { fields { name args { name type { name } } type { kind ofType { name } } } } }',
    })
    const args = [{ name: 'authorId', type: { name: 'ID' } }, { name: 'after', type: { name: 'String' } }]
    t.same(byType.data.__type.fields, [
      { name: 'postCreated', args, type: { kind: 'NON_NULL', ofType: { name: 'Post' } } },
      { name: 'postChanged', args, type: { kind: 'NON_NULL', ofType: { name: 'PostChange' } } },
    ])
  })

  t.test('7.7 the introspection queries of common clients are within the limits', async (t) => {
    const full = getIntrospectionQuery({
      descriptions: true,
      specifiedByUrl: true,
      directiveIsRepeatable: true,
      schemaDescription: true,
      inputValueDeprecation: true,
      oneOf: true,
    })
    for (const query of [getIntrospectionQuery(), full, full, full]) {
      const { data, errors } = await post(usher, { query, operationName: 'IntrospectionQuery' })
      t.equal(errors, undefined)
      const subscription = data.__schema.types.find(({ name }: { name: string }) => name === 'Subscription')
      t.equal(subscription.fields[0].name, 'postCreated')
    }
  })
})

t.test('7.3 a listed post has the requested fields, and its content is read only if it was requested', async (t) => {
  const usher = watched
  const { admin } = usher
  const id = await createPost(usher, admin, 'Mine')
  const read = async (query: string, variables?: object) => {
    statements.length = 0
    const { data, errors } = await post(usher, { query, ...variables && { variables } })
    t.equal(errors, undefined)
    return data
  }
  const readsContent = () => statements.some((text) => text.includes('"content"'))

  t.same(await read('{ users { nodes { posts { id title } } } posts { nodes { id } } }'), {
    users: { nodes: [{ posts: [{ id, title: 'Mine' }] }] }, posts: { nodes: [{ id }] },
  })
  t.notOk(readsContent())
  t.notOk(
    statements.some((text) => text.includes('"posts"') && text.includes('row_version')),
    'nor is the version, without `etag`'
  )
  const asked: [string, object][] = [
    ['{ posts { nodes { body: content author { id } } } }', {
      posts: { nodes: [{ body: 'Words', author: { id: admin.id } }] },
    }],
    ['{ posts { edges { node { ... on Post { content } } } } }', {
      posts: { edges: [{ node: { content: 'Words' } }] },
    }],
    ['query ($not: Boolean! = false) { posts { nodes { title content @skip(if: $not) } } }', {
      posts: { nodes: [{ title: 'Mine', content: 'Words' }] },
    }],
    [`{ user(id: "${admin.id}") { posts { ...b } posts { title } again: posts { ...b } } } fragment b on Post { ...c } fragment c on Post { content }`,
      { user: { posts: [{ content: 'Words', title: 'Mine' }], again: [{ content: 'Words' }] } }],
  ]
  // The first execution of a document is interpreted, later ones are compiled.
  for (const [query, expected] of [...asked, ...asked, ...asked]) {
    t.same(await read(query), expected)
    t.ok(readsContent(), query)
  }

  // These queries share one statement, which reads every field that any of them selects.
  const queries = ['id', 'title', 'content', 'createdAt', 'author { id }']
    .map((field) => `{ user(id: "${admin.id}") { posts { ${field} } } }`)
  const [ids, titles, contents, times, authors] = await Promise.all(queries.map((query) => post(usher, { query })))
  t.same(
    [ids, titles, contents, authors].map((answer) => answer!.data.user.posts),
    [[{ id }], [{ title: 'Mine' }], [{ content: 'Words' }], [{ author: { id: admin.id } }]]
  )
  t.match(times!.data.user.posts[0].createdAt, /^\d{4}-/)
})

t.test('7.3 a non-null variable has its default value each time', async (t) => {
  const author = await usher.createUser()
  const [older, newer] = [await createPost(usher, author, 'Older'), await createPost(usher, author, 'Newer')]
  const list = `posts(authorId: "${author.id}", first: $first) { nodes { id @include(if: $with) } }`
  const query = `query ($first: Int! = 1, $id: ID! = "x", $with: Boolean! = true) { ${list} post(id: $id) { id } }`
  for (let round = 0; round < 3; round++) {
    t.same(await post(usher, { query }), { data: { posts: { nodes: [{ id: newer }] }, post: null } })
    t.same(await post(usher, { query, variables: { first: 2, id: older } }), {
      data: { posts: { nodes: [{ id: newer }, { id: older }] }, post: { id: older } },
    })
    for (const wrong of [{ first: 'x' }, { id: null }]) {
      t.match(await post(usher, { query, variables: wrong }), { errors: [{ message: String }] })
    }
  }
})

t.test('7.3 connections page forward without gaps or duplicates', async (t) => {
  const usher = await createUsher(t)
  const { admin } = usher
  const ids: string[] = []
  for (let index = 0; index < 7; index++) ids.unshift(await createPost(usher, admin, `Post ${index}`))

  const query =
    'query ($first: Int, $after: String) { posts(first: $first, after: $after) { nodes { id } edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }'
  const read = async (first: number | null, after?: string | null) =>
    post(usher, { query, variables: { first, ...after !== undefined && { after } } })

  for (const first of [1, 2, 3, 6, 7, 8, 100]) {
    const found: string[] = []
    let after: string | undefined
    for (;;) {
      const { data: { posts: { nodes, edges, pageInfo } } } = await read(first, after)
      t.same(edges.map(({ node }: { node: object }) => node), nodes)
      t.equal(pageInfo.startCursor, edges[0].cursor)
      t.equal(pageInfo.endCursor, edges.at(-1).cursor)
      t.equal(pageInfo.hasPreviousPage, after !== undefined)
      found.push(...nodes.map(({ id }: { id: string }) => id))
      t.equal(pageInfo.hasNextPage, found.length < 7)
      if (!pageInfo.hasNextPage) break
      after = pageInfo.endCursor
    }
    t.same(found, ids)
  }

  t.equal((await read(null, null)).data.posts.nodes.length, 7)
  const last = (await read(7)).data.posts.pageInfo.endCursor
  t.same((await read(7, last)).data.posts, {
    nodes: [], edges: [], pageInfo: { hasNextPage: false, hasPreviousPage: true, startCursor: null, endCursor: null },
  })
  for (const first of [0, -1, 101, 2147483647]) {
    t.match(await read(first), {
      data: null, errors: [{ message: 'first must be between 1 and 100', extensions: { code: 'INVALID_INPUT' } }],
    })
  }
  t.match((await read(2147483648)).errors![0]!.message, /^Variable "\$first" got invalid value 2147483648/)
  for (const after of ['', 'x', ids[0]!, 'A'.repeat(11), 'A'.repeat(22), '\u0000'.repeat(16), '_'.repeat(16)]) {
    t.match(await read(5, after), {
      data: null, errors: [{ message: 'after must be the cursor of a post', extensions: { code: 'INVALID_INPUT' } }],
    })
  }
  t.same((await read(5, 'A'.repeat(16))).data.posts.nodes, [])
  t.match(
    (await post(usher, { query: '{ me { posts(first: 0) { id } } }' }, admin)).errors![0]!.message,
    'first must be between 1 and 100'
  )
  t.same(
    (await post(usher, { query: '{ me { posts(first: 2) { id } } }' }, admin)).data.me.posts,
    [{ id: ids[0] }, { id: ids[1] }]
  )
})

t.test('7.8 relations cost no statement per row', async (t) => {
  const usher = watched
  const sql = openSql(t, { ...usher, options: { ...usher.options, databaseUrl: await testDatabaseUrl() } })
  await sql`insert into users (id, name, email, role) select gen_random_uuid(), 'User ' || n, n || '@example.com', 'user' from generate_series(1, 60) n`
  await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), id, 'Post ' || n, '' from users, generate_series(1, 3) n where role = 'user'`

  const count = async (query: string) => {
    statements.length = 0
    const { data, errors } = await post(usher, { query })
    t.equal(errors, undefined)
    // The node also deletes what has expired, at any time.
    return { data, sent: statements.filter((text) => /^select .*"(users|posts)"/s.test(text)) }
  }

  t.test('7.8 50 users with their posts take two SQL statements', async (t) => {
    for (let round = 0; round < 3; round++) {
      const { data, sent } = await count('{ users { nodes { id name posts { id title } } } }')
      t.equal(data.users.nodes.length, 50)
      t.same(data.users.nodes.map(({ posts }: { posts: object[] }) => posts.length), Array(50).fill(3))
      t.equal(sent.length, 2, sent.join('\n'))
    }
  })

  t.test('7.8 users, their posts and the authors of these take three statements', async (t) => {
    for (let round = 0; round < 3; round++) {
      const { data, sent } = await count('{ users(first: 100) { nodes { id posts(first: 2) { author { id } } } } }')
      t.equal(data.users.nodes.length, 61)
      const wrong = data.users.nodes.filter(({ id, posts }: { id: string, posts: { author: { id: string } }[] }) =>
        posts.some(({ author }) => author.id !== id))
      t.same(wrong, [])
      t.equal(sent.length, 3, sent.join('\n'))
    }
  })

  t.test('7.8 posts and their authors take two statements; aliases of a field share one', async (t) => {
    t.equal((await count('{ posts(first: 100) { nodes { author { name } } } }')).sent.length, 2)
    const ids =
      (await count('{ users(first: 3) { nodes { id } } }')).data.users.nodes.map(({ id }: { id: string }) => id)
    t.equal((await count(
      `{ ${ids.map((id: string, index: number) => `u${index}: user(id: "${id}") { name posts(first: ${index + 1}) { id } }`).join(' ')} }`
    )).sent.length, 2)
  })

  t.test('7.8 a response has a limited number of rows', async (t) => {
    await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), id, 'Post ' || n, '' from users, generate_series(1, 200) n`
    const { data, errors } = await post(
      usher, { query: '{ users(first: 100) { nodes { posts(first: 100) { author { posts(first: 100) { id } } } } } }' }
    )
    t.equal(data, null)
    t.match(errors![0], {
      message: 'The operation costs more than 12500: ask for fewer rows or fields',
      extensions: { code: 'OPERATION_TOO_COSTLY' },
    })
    t.equal(
      (await post(usher, { query: '{ users(first: 50) { nodes { posts(first: 100) { id } } } }' })).errors, undefined
    )
  })
})

t.test('7.3 if the author of a post is deleted while the post is read, the error says so', async (t) => {
  const usher = await sharedUsher()
  const { createUser, admin, inject } = usher
  const authors = await Promise.all(Array.from({ length: 10 }, () => createUser()))
  for (const author of authors) await createPost(usher, author)
  const query = { query: '{ posts(first: 100) { nodes { id author { id } } } }' }
  const answers = await Promise.all(authors.flatMap((author) => [
    ...Array.from({ length: 5 }, () => post(usher, query)),
    inject('DELETE', `/api/users/${author.id}`, { headers: admin.headers }).then(() => post(usher, query)),
  ]))
  for (const { data, errors } of answers) {
    if (errors) t.match(errors, [{ message: 'User not found', extensions: { code: 'USER_NOT_FOUND' } }])
    else t.ok(data.posts.nodes.every(({ author }: { author: object }) => author))
  }
  const ids = new Set(authors.map(({ id }) => id))
  const { data } = await post(usher, query)
  t.same(data.posts.nodes.filter(({ author }: { author: { id: string } }) => ids.has(author.id)), [])
})

t.test('1.13 a query that asks for little does not share the statement of a costly one', async (t) => {
  const { id } = await watched.createUser()
  const costly = '{ users(first: 50) { nodes { posts(first: 50) { id content } } } }'
  const cheap = `{ user(id: "${id}") { posts(first: 1) { title } } }`
  const readsOfPosts = async (...queries: string[]) => {
    statements.length = 0
    await Promise.all(queries.map(async (query) => t.notOk((await post(watched, { query })).errors)))
    return statements.filter((text) => text.includes('"posts"'))
      .map((text) => ['title', 'content'].filter((name) => text.includes(`"${name}"`)))
  }
  t.same((await readsOfPosts(costly, cheap)).sort(), [['content'], ['title']])
  t.same(
    await readsOfPosts(cheap, `{ user(id: "${id}") { posts(first: 2) { content } } }`),
    [['title', 'content']],
    'two that ask for little share one'
  )
})
