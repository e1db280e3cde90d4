import { request } from 'node:http'
import { PassThrough } from 'node:stream'
import { gunzipSync } from 'node:zlib'
import Fastify from 'fastify'
import t from 'tap'
import usherPlugin from '../../app.ts'
import { createUsher, sharedUsher, withUsers, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { hostOf, post, createPost } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql } from '../helpers/sql.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

const json = { 'content-type': 'application/json' }

const usher = await sharedUsher()

t.test('GraphQL over HTTP', async (t) => {
  const { admin, inject } = usher

  const send = (payload: string | undefined, headers: Record<string, string> = json) =>
    inject('POST', '/graphql', { headers, ...payload !== undefined && { payload } })

  t.test('7.1 every POST to /graphql has status 200 (given)', async (t) => {
    const failures: [what: string, payload: string |
      undefined, headers: Record<string, string>, message: string, code: string][] = [
      [
        'a bad query', '{"query":"{ nothing }"}', json, 'Cannot query field "nothing" on type "Query".',
        'GRAPHQL_INVALID',
      ],
      [
        'a query that is no GraphQL', '{"query":"{"}', json, 'Syntax Error: Expected Name, found <EOF>.',
        'GRAPHQL_INVALID',
      ],
      ['an empty selection', '{"query":"{}"}', json, 'Syntax Error: Expected Name, found "}".', 'GRAPHQL_INVALID'],
      ['a number', '{"query":"123"}', json, 'Syntax Error: Unexpected Int "123".', 'GRAPHQL_INVALID'],
      [
        'a raw AST as text', JSON.stringify({ query: JSON.stringify({ kind: 'Document', definitions: [] }) }), json,
        'Syntax Error: Expected Name, found String "kind".', 'GRAPHQL_INVALID',
      ],
      [
        'a raw AST', '{"query":{"kind":"Document","definitions":[]}}', json, 'query is required and must be a string',
        'BAD_REQUEST',
      ],
      [
        'a persisted query', '{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}}', json,
        'PersistedQueryNotSupported', 'PERSISTED_QUERY_NOT_SUPPORTED',
      ],
      ['a missing query', '{}', json, 'query is required and must be a string', 'BAD_REQUEST'],
      ['a blank query', '{"query":" "}', json, 'query is required and must be a string', 'BAD_REQUEST'],
      ['a null query', '{"query":null}', json, 'query is required and must be a string', 'BAD_REQUEST'],
      ['a body that is a batch', '[{"query":"{ me { id } }"}]', json, 'The body must be a JSON object', 'BAD_REQUEST'],
      ['a body that is null', 'null', json, 'The body must be a JSON object', 'BAD_REQUEST'],
      ['a body that is text', '"{ me { id } }"', json, 'The body must be a JSON object', 'BAD_REQUEST'],
      ['no body', undefined, {}, 'The body must be a JSON object', 'BAD_REQUEST'],
      ['an empty body', '', json, 'The body must be a JSON object', 'BAD_REQUEST'],
      ['malformed JSON', '{"query":', json, 'body is not valid JSON', 'INVALID_INPUT'],
      [
        'text', '{ me { id } }', { 'content-type': 'text/plain' }, 'The content type must be application/json',
        'UNSUPPORTED_MEDIA_TYPE',
      ],
      [
        'a form', 'query={}', { 'content-type': 'application/x-www-form-urlencoded' },
        'The content type must be application/json', 'UNSUPPORTED_MEDIA_TYPE',
      ],
      [
        'an odd content type', '{}', { 'content-type': ';;' }, 'The content type must be application/json',
        'UNSUPPORTED_MEDIA_TYPE',
      ],
      [
        'too large a body', JSON.stringify({ query: 'x'.repeat(1024 * 1024) }), json, 'The request body is too large',
        'PAYLOAD_TOO_LARGE',
      ],
      [
        'too long a document', JSON.stringify({ query: `{ me { id } } #${'x'.repeat(256 * 1024)}` }), json,
        'query must be at most 262144 characters', 'BAD_REQUEST',
      ],
      [
        'a body shorter than it says', '{}', { ...json, 'content-length': '3' },
        'body is shorter or longer than its content-length', 'INVALID_INPUT',
      ],
      [
        'variables that are text', '{"query":"{ me { id } }","variables":"{}"}', json, 'variables must be an object',
        'BAD_REQUEST',
      ],
      [
        'an operation name that is none', '{"query":"{ me { id } }","operationName":"1\\nx"}', json,
        'operationName must be a name', 'BAD_REQUEST',
      ],
      [
        'a mutation without a token', '{"query":"mutation { deletePost(id: 1) }"}', json, 'A bearer token is required',
        'UNAUTHENTICATED',
      ],
      [
        'a bad token', '{"query":"{ users { nodes { id } } }"}', { ...json, authorization: 'Bearer x' },
        'The bearer token is invalid, expired or revoked', 'INVALID_TOKEN',
      ],
      [
        'a subscription', '{"query":"subscription { postCreated { id } }"}', json, 'Subscriptions need a WebSocket',
        'BAD_REQUEST',
      ],
    ]
    for (const [what, payload, headers, message, code] of failures) {
      const response = await send(payload, headers)
      t.equal(response.statusCode, 200, what)
      t.equal(response.headers['content-type'], 'application/json; charset=utf-8', what)
      const { data, errors } = response.json()
      t.match(errors, [{ message, extensions: { code } }], what)
      t.equal(errors.length, 1, what)
      t.equal(data ?? null, null, what)
    }
  })

  t.test('7.1 over a real connection, a body without a content type and one that is too large get 200 with errors', async (t) => {
    for (const [headers, body, code] of [
      [{}, '{"query":"{ me { id } }"}', 'UNSUPPORTED_MEDIA_TYPE'],
      [json, JSON.stringify({ query: 'x'.repeat(3 * 1024 * 1024) }), 'PAYLOAD_TOO_LARGE'],
    ] as const) {
      const response = await new Promise<{ status: number | undefined, text: string }>((resolve, reject) => {
        hostOf(usher).then((host) => {
          const sent = request(`http://${host}/graphql`, {
            method: 'POST', headers: { ...headers, 'content-length': Buffer.byteLength(body) },
          }, async (response) => {
            resolve({ status: response.statusCode, text: (await response.toArray()).join('') })
          })
          sent.on('error', reject).end(body)
        }, reject)
      })
      t.equal(response.status, 200)
      t.equal(JSON.parse(response.text).errors[0].extensions.code, code)
    }
  })

  t.test('7.1 a body of type application/graphql is a query', async (t) => {
    const response = await send('{ me { id } }', { 'content-type': 'application/graphql' })
    t.equal(response.statusCode, 200)
    t.same(response.json(), { data: { me: null } })
  })

  t.test('7.1 other paths get 404', async (t) => {
    t.equal((await inject('POST', '/graphql/', { payload: { query: '{ me { id } }' } })).statusCode, 404)
    t.equal((await inject('POST', '/graphiql', { payload: { query: '{ me { id } }' } })).statusCode, 404)
  })

  t.test('7.2 an operation may be sent under mutation, also without the keyword (given)', async (t) => {
    const field = 'createPost(input: { title: "A", content: "B" }) { title }'
    for (const mutation of [
      `{ ${field} }`,
      `mutation { ${field} }`,
      `mutation Named { ${field} }`,
      `\n # a comment { \n ,, \ufeff { ${field} }`,
      `\ufeff{ ${field} }`,
      '{ createPost(input: { title: "A", content: "B" }) { ...F } } fragment F on Post { title }',
      'fragment F on Post { title } mutation { createPost(input: { title: "A", content: "B" }) { ...F } }',
    ]) {
      for (let round = 0; round < 3; round++) {
        t.same(await post(usher, { mutation }, admin), { data: { createPost: { title: 'A' } } }, mutation)
      }
    }
    t.same(
      await post(usher, { mutation: 'query { me { role } }' }, admin), { data: { me: { role: 'admin' } } }, 'a query'
    )
    t.same(await post(
      usher, { mutation: '{ createPost(input: $input) { title } }', variables: { input: {} } }, admin
    ), {
      data: null,
      errors: [{
        message: 'Variable "$input" is not defined.',
        locations: [{ line: 1, column: 30 }, { line: 1, column: 1 }],
        extensions: { code: 'GRAPHQL_INVALID' },
      }],
    })
    const { errors } = await post(usher, { mutation: '"' }, admin)
    t.equal(errors![0]!.message, 'Syntax Error: Unterminated string.')
    const { errors: notAMutation } = await post(usher, { mutation: '{ me { id } }' }, admin)
    t.equal(notAMutation![0]!.message, 'Cannot query field "me" on type "Mutation".')
  })

  t.test('7.2 a selection set without a keyword, sent under query, is a query', async (t) => {
    t.same(await post(usher, { query: '{ me { role } }', mutation: null }, admin), { data: { me: { role: 'admin' } } })
  })

  t.test('7.2 sending both keys is an error', async (t) => {
    const { data, errors } = await post(usher, { query: '{ me { id } }', mutation: '{ deletePost(id: 1) }' }, admin)
    t.notOk(data)
    t.match(errors, [{ message: 'Send either query or mutation, not both', extensions: { code: 'BAD_REQUEST' } }])
  })

  t.test('7.2 operationName selects one operation of a document, also when the document is cached', async (t) => {
    const query = 'query A { me { role } } query B { me { name } } mutation C { deletePost(id: "x") }'
    for (let round = 0; round < 4; round++) {
      t.same(await post(usher, { query, operationName: 'A' }, admin), { data: { me: { role: 'admin' } } })
      t.same(await post(usher, { query, operationName: 'B' }, admin), { data: { me: { name: 'Admin' } } })
      t.match(
        await post(usher, { query, operationName: 'C' }, admin), { data: null, errors: [{ message: 'Post not found' }] }
      )
      t.match(await post(usher, { query, operationName: 'D' }, admin), {
        data: null, errors: [{ message: 'Unknown operation named "D".', extensions: { code: 'GRAPHQL_INVALID' } }],
      })
      t.match(await post(usher, { query }, admin), {
        data: null, errors: [{ message: 'Must provide operation name if query contains multiple operations.' }],
      })
    }
    for (const absent of [{ operationName: null, variables: null }, { operationName: '', variables: [] }]) {
      t.same(
        await post(usher, { query: 'query A { me { role } }', ...absent }, admin), { data: { me: { role: 'admin' } } }
      )
    }
  })

  t.test('7.2 invalid variables get the same errors each time', async (t) => {
    const query = 'query ($id: ID!, $first: Int = 2) { user(id: $id) { posts(first: $first) { title } } }'
    const { id } = await usher.createUser()
    for (let count = 0; count < 21; count++) {
      await post(usher, { mutation: `{ createPost(input: { title: "A", content: "", authorId: "${id}" }) { id } }` }, admin)
    }
    for (let round = 0; round < 4; round++) {
      t.same(await post(usher, { query, variables: { id, first: null } }), {
        data: { user: { posts: Array(21).fill({ title: 'A' }) } },
      })
      t.same(await post(usher, { query, variables: { id, other: 1 } }), {
        data: { user: { posts: [{ title: 'A' }, { title: 'A' }] } },
      })
    }
    const byDefault = 'query ($id: ID = "x") { user(id: $id) { id } }'
    for (let round = 0; round < 4; round++) {
      t.match(await post(usher, { query: byDefault, variables: { id: null } }), {
        data: { user: null },
        errors: [{
          message: 'Argument "id" of non-null type "ID!" must not be null.',
          path: ['user'],
          extensions: { code: 'GRAPHQL_INVALID' },
        }],
      })
    }
    for (const variables of [
      { id: {} }, { id: null }, {}, undefined, { id: '1', first: 'x' }, { id: '1', first: 1.5 }, { id: ['1'] },
    ]) {
      for (let round = 0; round < 4; round++) {
        const { data, errors } = await post(usher, { query, variables })
        t.equal(data, null)
        t.match(errors, [{ message: /^Variable "\$(id|first)" /, extensions: { code: 'GRAPHQL_INVALID' } }])
      }
    }
  })

  t.test('7.8 deep, numerous or long variables cost little and are not repeated in the response', async (t) => {
    const query = 'mutation ($input: CreatePostInput!) { createPost(input: $input) { id } }'
    const deep = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`
    const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]))
    const many = JSON.stringify(keys(50_000))
    const long = JSON.stringify({ title: 'x'.repeat(500_000), ...keys(100) })
    const tooMany = {
      message: 'The variables have more than 1000 values', extensions: { code: 'GRAPHQL_LIMIT_EXCEEDED' },
    }
    const invalid = { message: /^Variable "\$input" got invalid value.*…$/, extensions: { code: 'GRAPHQL_INVALID' } }
    const cases: [input: string, expected: object][] = [[deep, tooMany], [many, tooMany], [long, invalid]]
    for (const headers of [json, { ...json, ...admin.headers }]) {
      for (const [input, expected] of [...cases, ...cases]) {
        const response = await send(`{"query":"${query}","variables":{"input":${input}}}`, headers)
        const { data, errors } = response.json()
        t.equal(response.statusCode, 200)
        t.equal(data, null)
        t.match(errors, [expected])
        t.ok(response.body.length < 3000, `${response.body.length} characters`)
      }
    }
    // Each of up to fifty errors quotes the whole input if it is small.
    for (let count = 10; count <= 150; count += 20) {
      for (const value of [1, 1.234567890123456e-300, 'x', {}, null]) {
        const input = Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]))
        const response = await post(usher, { query, variables: { input } })
        t.match(
          response.errors![0],
          { message: /^Variable "\$input" got invalid value \{/ },
          `${count} of ${JSON.stringify(value)}`
        )
        t.ok(JSON.stringify(response).length < 40_000, `${JSON.stringify(response).length} characters`)
      }
    }
  })

  t.test('7.3 a success has data, a failure has errors, the same each time (given)', async (t) => {
    const id = await createPost(usher, admin, 'Once')
    const cases: [query: string, expected: object][] = [
      [`{ post(id: "${id}") { title author { name } } }`, {
        data: { post: { title: 'Once', author: { name: 'Admin' } } },
      }],
      ['{ a: me { role } b: user(id: "x") { id } }', {
        data: { a: { role: 'admin' }, b: null },
        errors: [{
          message: 'User not found',
          locations: [{ line: 1, column: 18 }],
          path: ['b'],
          extensions: { code: 'USER_NOT_FOUND' },
        }],
      }],
      ['{ users(first: 0) { nodes { id } } }', {
        data: null,
        errors: [{
          message: 'first must be between 1 and 100',
          locations: [{ line: 1, column: 3 }],
          path: ['users'],
          extensions: { code: 'INVALID_INPUT', errors: ['first must be between 1 and 100'] },
        }],
      }],
      ['{ me { posts(first: 101) { id } } }', {
        data: { me: null },
        errors: [{
          message: 'first must be between 1 and 100',
          locations: [{ line: 1, column: 8 }],
          path: ['me', 'posts'],
          extensions: { code: 'INVALID_INPUT', errors: ['first must be between 1 and 100'] },
        }],
      }],
      ['mutation { createPost(input: { title: "", content: "\\u0000" }) { id } }', {
        data: null,
        errors: [{
          message: 'title must not be blank; content must not contain control characters',
          locations: [{ line: 1, column: 12 }],
          path: ['createPost'],
          extensions: {
            code: 'INVALID_INPUT', errors: ['title must not be blank', 'content must not contain control characters'],
          },
        }],
      }],
      ['{ me { id(x: 1) } other }', {
        data: null,
        errors: [
          {
            message: 'Unknown argument "x" on field "User.id".',
            locations: [{ line: 1, column: 11 }],
            extensions: { code: 'GRAPHQL_INVALID' },
          },
          {
            message: 'Cannot query field "other" on type "Query". Did you mean "user"?',
            locations: [{ line: 1, column: 19 }],
            extensions: { code: 'GRAPHQL_INVALID' },
          },
        ],
      }],
    ]
    for (const [query, expected] of cases) {
      for (let round = 0; round < 4; round++) t.same(await post(usher, { query }, admin), expected, query)
    }
  })
})

t.test('7.3 the response to an unexpected failure reveals no cause; the log contains it', async (t) => {
  const lines = new PassThrough()
  const app = Fastify({ pluginTimeout: 0, logger: { stream: lines, level: 'error' } })
  t.teardown(() => app.close())
  const options = {
    databaseUrl: await testDatabaseUrl(),
    schema: uniqueSchema('failure'),
    uploadsDir: temporaryFolder(),
    poolSize: 2,
    admin: { email: 'admin@example.com', password: 'horse battery staple' },
  }
  await app.register(usherPlugin, options)
  const usher = await withUsers(app, options)
  await createPost(usher, usher.admin)
  const sql = openSql(t, usher)
  await sql`update posts set created_at = 'infinity'`
  for (let round = 0; round < 3; round++) {
    const { data, errors } = await post(usher, { query: '{ posts { nodes { createdAt } } }' })
    t.equal(data, null)
    t.match(errors, [{
      message: 'The server failed', path: ['posts', 'nodes', 0, 'createdAt'], extensions: { code: 'INTERNAL_ERROR' },
    }])
    t.match(JSON.parse(String(lines.read())), { level: 50, reqId: String, err: { message: 'Invalid time value' } })
  }
  await sql`drop table posts`
  t.match(await post(usher, { query: '{ posts { nodes { createdAt } } }' }), {
    data: null, errors: [{ message: 'The server failed' }],
  })
  t.match(JSON.parse(String(lines.read())), { err: { message: /relation ".*" does not exist/ } })
  t.match(await post(usher, { mutation: '{ createPost(input: { title: "A", content: "" }) { id } }' }, usher.admin), {
    data: null, errors: [{ message: 'The server failed', extensions: { code: 'INTERNAL_ERROR' } }],
  })
  t.match(JSON.parse(String(lines.read())), { err: { message: /relation ".*" does not exist/ } })
})

t.test('7.1 a rejection by a hook of the host also has status 200, with the host\'s message', async (t) => {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  app.addHook('onRequest', async ({ headers }) => {
    if (headers['x-refuse']) {
      throw Object.assign(
        new Error('Slow down'), { statusCode: 429, ...headers['x-refuse'] !== 'plain' && { code: headers['x-refuse'] } }
      )
    }
  })
  await app.register(usherPlugin, {
    databaseUrl: await testDatabaseUrl(), schema: uniqueSchema('refusal'), uploadsDir: temporaryFolder(), poolSize: 2,
  })
  for (const [word, code] of [['plain', 'BAD_REQUEST'], ['TOO_MANY', 'TOO_MANY']]) {
    const response = await app.inject({
      method: 'POST', url: '/graphql', headers: { 'x-refuse': word! }, payload: { query: '{ me { id } }' },
    })
    t.equal(response.statusCode, 200)
    t.match(response.json(), { data: null, errors: [{ message: 'Slow down', extensions: { code } }] })
  }
})

nightly('7.1 a browser gets GraphiQL, which loads nothing from other origins', async (t) => {
  const { inject } = usher
  for (let round = 0; round < 2; round++) {
    const response = await inject('GET', '/graphql', {
      headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'accept-encoding': 'gzip, deflate, br' },
    })
    t.equal(response.statusCode, 200)
    t.match(response.headers, {
      'content-type': 'text/html; charset=utf-8',
      'content-encoding': 'gzip',
      vary: 'Accept, Accept-Encoding',
      'content-security-policy': /default-src 'none'/,
    })
    t.match(String(gunzipSync(response.rawPayload)), /<title>Usher GraphiQL<\/title>/)
  }
  for (const encoding of ['identity', 'br', 'gzip;q=0']) {
    const { headers, body } = await inject(
      'GET', '/graphql', { headers: { accept: 'text/html', 'accept-encoding': encoding } }
    )
    t.match(headers, { 'content-encoding': undefined, vary: 'Accept, Accept-Encoding' })
    t.match(body, '<title>Usher GraphiQL</title>', encoding)
  }
})

nightly('7.1 without a database the response is 200 with errors; service resumes when the database is back', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const usher: TestUsher = await createUsher(t, { databaseUrl: proxy.url, deadlines: {} })
  const id = await createPost(usher, usher.admin)
  await proxy.refuse()
  for (const query of [
    '{ users { nodes { id } } }', `{ user(id: "${usher.admin.id}") { id } }`, `mutation { deletePost(id: "${id}") }`,
  ]) {
    const { data, errors } = await post(usher, { query }, usher.admin)
    t.notOk(data?.users ?? data?.user ?? data?.deletePost)
    t.match(
      errors,
      [{ message: 'The database is unavailable, try again', extensions: { code: 'DATABASE_UNAVAILABLE' } }],
      query
    )
  }
  await proxy.listen()
  while ((await post(usher, { query: '{ users { nodes { id } } }' })).errors) await new Promise(setImmediate)
  t.same(
    await post(usher, { query: `mutation { deletePost(id: "${id}") }` }, usher.admin), { data: { deletePost: id } }
  )
})
