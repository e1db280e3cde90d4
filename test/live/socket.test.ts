import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import type { UsherOptions } from '../../app.ts'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { createPost, hostOf, openSocket, post, protocols, type TestSocket } from '../helpers/graphql.ts'
import { until } from '../helpers/until.ts'

const LONG = `of_${'many_'.repeat(40)}words`
const POSTS = 'subscription { postCreated { title } }'

/** A host with a query that ends when `release` is called. Its weight decides whether it waits for others. */
function createHold () {
  const { promise, resolve: release } = Promise.withResolvers<number>()
  const graphql: UsherOptions['graphql'] = {
    typeDefs: 'extend type Query { hold: Int @cost(weight: 100) }',
    resolvers: { Query: { hold: () => promise } },
    resolverSeconds: 600,
  }
  return { graphql, release: () => release(1) }
}

t.test('the socket', { jobs: 20 }, async (t) => {
  const usher = await sharedUsher()
  const brief = await createUsher(t, { accessTokenSeconds: 2 })
  const impatient = await createUsher(t, { pingSeconds: 4 })
  const hasty = await createUsher(t, { deadlines: { ...slow, socketInit: 1000 } })
  // The apps listen before the tests, which run in parallel.
  for (const each of [usher, brief, impatient, hasty]) await hostOf(each)
  const { admin, createUser, inject } = usher
  const fresh = async (t: Test, protocol = protocols[0] as typeof protocols[number]) =>
    (await openSocket(t, usher, { protocol })).init()

  for (const protocol of protocols) {
    t.test(`7.7 ${protocol}: an operation before the acknowledgement closes the socket with 4401`, async (t) => {
      const socket = await openSocket(t, usher, { protocol })
      socket.start('1', POSTS)
      t.equal(await socket.closed, 4401)
    })

    t.test(`7.7 ${protocol}: an invalid message closes the socket with 4400`, async (t) => {
      const { words: { start } } = await fresh(t, protocol)
      const otherWord = protocol === 'graphql-ws' ? 'subscribe' : 'start'
      for (const message of [
        'no JSON', '', '1', 'null', '[]', '"x"', '{}', '{"type":1}', '{"type":"other"}', '{"type":"__proto__"}',
        { type: otherWord, id: '1', payload: { query: POSTS } },
        { type: start, payload: { query: POSTS } },
        { type: start, id: '', payload: { query: POSTS } },
        { type: start, id: 1, payload: { query: POSTS } },
        { type: start, id: '1' },
        { type: start, id: '1', payload: null },
        { type: start, id: '1', payload: [] },
      ]) {
        const socket = await fresh(t, protocol)
        socket.send(message)
        t.equal(await socket.closed, 4400, JSON.stringify(message))
      }
    })

    t.test(`7.7 ${protocol}: a wrong operation gets an error with its id, and the others on the socket continue`, async (t) => {
      const user = await createUser()
      const socket = await fresh(t, protocol)
      socket.start('other', `subscription { postCreated(authorId: "${user.id}") { title } }`)
      for (const [payload, message, code] of [
        [{}, 'query is required and must be a string', 'BAD_REQUEST'],
        [{ query: { kind: 'Document', definitions: [] } }, 'query is required and must be a string', 'BAD_REQUEST'],
        [{ query: POSTS, mutation: POSTS }, 'Send either query or mutation, not both', 'BAD_REQUEST'],
        [{ query: POSTS, variables: [1] }, 'variables must be an object', 'BAD_REQUEST'],
        [
          { query: POSTS, variables: Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`v${index}`, 1])) },
          'The variables have more than 1000 values',
          'GRAPHQL_LIMIT_EXCEEDED',
        ],
        [{ query: POSTS, operationName: 1 }, 'operationName must be a name', 'BAD_REQUEST'],
        [{ query: POSTS, extensions: { idempotencyKey: '' } }, /^extensions\.idempotencyKey must /, 'BAD_REQUEST'],
        [
          {
            query: 'query ($id: ID!, $q: String) { user(id: $id) { id } users(q: $q) { nodes { id } } }',
            variables: { id: null, q: 'x'.repeat(501) },
          },
          'Variable "$id" of non-null type "ID!" must not be null.', 'GRAPHQL_INVALID',
        ],
        [
          {
            query: `query ($${LONG}: Int) { posts(first: $${LONG}) { nodes { id } } }`,
            variables: { [LONG]: 'x'.repeat(2000) },
          },
          /^Variable "\$of_many_/, 'GRAPHQL_INVALID',
        ],
      ] as const) {
        socket.send({ type: socket.words.start, id: 'wrong', payload })
        t.match(await socket.next(), { type: 'error', id: 'wrong', payload: [{ message, extensions: { code } }] })
      }
      await createPost(usher, user, 'Still there')
      t.same(await socket.next(), {
        type: socket.words.data, id: 'other', payload: { data: { postCreated: { title: 'Still there' } } },
      })
    })

    t.test(`7.7 ${protocol}: an empty operationName counts as absent, and an empty array of variables as an object`, async (t) => {
      const socket = await fresh(t, protocol)
      t.same(await socket.run('query A { me { id } }', { operationName: '', variables: [] }), { data: { me: null } })
    })

    t.test(`7.7 ${protocol}: values that cannot be converted to strings are rejected or ignored, and harm nothing`, async (t) => {
      const untold = { toString: null, valueOf: null }
      for (const payload of [{ authorization: untold }, { headers: { Authorization: untold } }]) {
        const socket = await openSocket(t, usher, { protocol })
        socket.send({ type: 'connection_init', payload })
        t.equal(await socket.closed, 4403)
      }
      const socket = await fresh(t, protocol)
      for (const id of [untold, null, 1, []]) socket.send({ type: socket.words.stop, id })
      t.same(await socket.run('{ __typename }'), { data: { __typename: 'Query' } })
    })

    t.test(`7.7 ${protocol}: messages after the one that closed the socket are ignored`, async (t) => {
      const user = await createUser()
      const before = await createPost(usher, user, 'Before')
      const socket = await (await openSocket(t, usher, { protocol })).init(user.headers)
      socket.send({ type: 'connection_init' })
      socket.start('1', 'mutation { createPost(input: { title: "After", content: "" }) { id } }')
      t.equal(await socket.closed, 4429)
      t.same(
        (await post(usher, { query: `{ posts(authorId: "${user.id}") { nodes { id title } } }` })).data.posts.nodes,
        [{ id: before, title: 'Before' }]
      )
    })

    t.test(`7.7 ${protocol}: an id that is in use closes the socket with 4409`, async (t) => {
      const socket = await fresh(t, protocol)
      socket.start('1', POSTS)
      socket.start('1', POSTS)
      t.equal(await socket.closed, 4409)
    })

    t.test(`7.7 ${protocol}: no connection_init in time closes the socket with 4408`, async (t) => {
      const socket = await openSocket(t, hasty, { protocol })
      const since = performance.now()
      t.equal(await socket.closed, 4408)
      t.ok(performance.now() - since > 500)
    })

    t.test(`7.7 ${protocol}: a message over 16 KiB closes the socket with 1009, a smaller one is read`, async (t) => {
      const socket = await fresh(t, protocol)
      t.match(await socket.run('{ me { id } }', { variables: { content: 'x'.repeat(16_000) } }), { data: { me: null } })
      socket.start('1', POSTS, { variables: { content: 'x'.repeat(16_384) } })
      t.equal(await socket.closed, 1009)
    })

    t.test(`7.4 ${protocol}: an invalid token closes the socket with 4403`, async (t) => {
      for (const payload of [
        { authorization: 'Bearer x' }, { Authorization: 'x' }, { headers: { authorization: 'Bearer x' } },
        { headers: { Authorization: null, authorization: 1 } }, { authorization: {} },
      ]) {
        const socket = await openSocket(t, usher, { protocol })
        socket.send({ type: 'connection_init', payload })
        if (protocol === 'graphql-ws') {
          t.match(await socket.next(), { type: 'connection_error', payload: { message: 'Forbidden' } })
        }
        t.equal(await socket.closed, 4403)
      }
    })

    t.test(`7.4 ${protocol}: a mutation works with a token, in each place where clients put it`, async (t) => {
      const { headers: { authorization } } = admin
      const mutation = 'mutation { createPost(input: { title: "By socket", content: "" }) { title author { id } } }'
      const expected = { data: { createPost: { title: 'By socket', author: { id: admin.id } } } }
      for (const payload of [
        { authorization }, { Authorization: authorization }, { headers: { authorization } },
        { headers: { Authorization: authorization } }, { authorization, extra: JSON.parse('{"__proto__":1}') },
      ]) {
        const socket = await (await openSocket(t, usher, { protocol })).init(payload)
        for (let round = 0; round < 3; round++) t.same(await socket.run(mutation), expected)
        t.same(await socket.run('', {
          query: undefined,
          mutation: '{ createPost(input: { title: "By socket", content: "" }) { title author { id } } }',
        }), expected)
      }
      const upgraded = await (await openSocket(t, usher, { protocol, headers: admin.headers })).init()
      t.same(await upgraded.run(mutation), expected)
      t.same(await (await fresh(t, protocol)).run('{ me { id } }'), { data: { me: null } })
    })

    t.test(`7.4 ${protocol}: a socket closes with 4403 when its session ends, however the token was sent`, async (t) => {
      for (const rest of ['payload', 'upgrade']) {
        const user = await createUser()
        const socket = await openSocket(t, usher, { protocol, ...rest === 'upgrade' && { headers: user.headers } })
        await socket.init(rest === 'payload' ? user.headers : undefined)
        const other = await (await openSocket(t, usher, { protocol })).init(user.headers)
        other.socket.close()
        await other.closed
        t.same(await socket.run('{ me { id } }'), { data: { me: { id: user.id } } })
        t.equal((await inject('POST', '/api/auth/logout', { headers: user.headers })).statusCode, 204)
        t.equal(await socket.closed, 4403)
        const late = await openSocket(t, usher, { protocol })
        late.send({ type: 'connection_init', payload: user.headers })
        t.equal(await late.closed, 4403)
      }
    })

    t.test(`7.4 ${protocol}: a socket closes with 4403 when its token expires`, async (t) => {
      // On a busy machine, the token may expire before the socket has its message.
      const init = async (): Promise<TestSocket> => {
        const socket = await openSocket(t, brief, { protocol })
        const { headers } = await brief.login(brief.admin)
        socket.send({ type: 'connection_init', payload: headers })
        const { type } = await Promise.race([socket.next(), socket.closed.then(() => ({ type: 'closed' }))])
        return type === 'connection_ack' ? socket : init()
      }
      t.equal(await (await init()).closed, 4403)
    })

    t.test(`7.7 ${protocol}: a client that does not respond to pings is disconnected`, async (t) => {
      const [here, gone] = await Promise.all(
        [1, 2].map(async () => (await openSocket(t, impatient, { protocol })).init())
      )
      gone!.socket.pause()
      // Both ends run in this process, so the interval is longer than its event loop is ever blocked.
      for (let round = 0; round < 2; round++) await here!.whileOpen('a ping', once(here!.socket, 'ping'))
      t.same(await here!.run('{ me { id } }'), { data: { me: null } })
      gone!.socket.resume()
      t.equal(await gone!.closed, 1006)
    })

    t.test(`7.7 ${protocol}: an id can be reused at once and receives nothing from its previous operation`, async (t) => {
      const user = await createUser()
      const socket = await fresh(t, protocol)
      const posts = `subscription { postCreated(authorId: "${user.id}") { title } }`
      for (let round = 0; round < 30; round++) {
        socket.start('1', posts)
        socket.stop('1')
      }
      socket.start('1', '{ me { id } }')
      socket.stop('1')
      socket.start('1', posts)
      socket.start('settled', '{ __typename }')
      // The query may have ended before it was stopped, where the messages do not arrive together.
      for (let message = await socket.next(); message.id !== 'settled' || message.type !== 'complete';) {
        message = await socket.next()
      }
      socket.stop('unknown')
      socket.send({ type: socket.words.stop })
      await createPost(usher, user, 'Again')
      t.same(await socket.next(), {
        type: socket.words.data, id: '1', payload: { data: { postCreated: { title: 'Again' } } },
      })
    })

    t.test(`7.7 ${protocol}: an id may be any string and is returned unchanged`, async (t) => {
      const socket = await fresh(t, protocol)
      for (const id of ['"', '\\', 'é😀', '\u0000', '__proto__', 'x'.repeat(1000), '{"type":"next"}']) {
        socket.start(id, '{ me { id } }')
        t.same(await socket.next(), { type: socket.words.data, id, payload: { data: { me: null } } })
        t.same(await socket.next(), { type: 'complete', id })
      }
    })

    t.test(`7.8 ${protocol}: at most ten operations run at once`, async (t) => {
      const socket = await fresh(t, protocol)
      const quiet = 'subscription { postCreated(authorId: "nobody") { title } }'
      for (let id = 0; id < 10; id++) socket.start(String(id), quiet)
      socket.start('10', quiet)
      t.match(await socket.next(), {
        type: 'error',
        id: '10',
        payload: [
          { message: 'A socket may run at most 10 operations at once', extensions: { code: 'GRAPHQL_LIMIT_EXCEEDED' } },
        ],
      })
      socket.stop('3')
      t.same(await socket.run('{ me { id } }'), { data: { me: null } })
    })

    t.test(`1.13 ${protocol}: a query that was stopped counts among the ten operations until it ends`, async (t) => {
      const { graphql, release } = createHold()
      const holding = await createUsher(t, { graphql })
      const socket = await (await openSocket(t, holding, { protocol })).init()
      for (let round = 0; round < 10; round++) {
        socket.start('1', '{ hold }')
        socket.stop('1')
      }
      socket.start('1', '{ hold }')
      t.match(await socket.next(), {
        type: 'error', id: '1', payload: [{ message: 'A socket may run at most 10 operations at once' }],
      })
      release()
      await until('the queries have ended', async () => (await socket.run('{ __typename }')).data)
      socket.start('1', '{ hold }')
      t.same(await socket.next(), { type: socket.words.data, id: '1', payload: { data: { hold: 1 } } })
    })

    t.test(`1.13 ${protocol}: queries that were stopped or whose socket was closed do not wait for their turn any longer`, async (t) => {
      const { graphql, release } = createHold()
      // Each of these queries uses the whole budget, so that only one of them runs.
      const holding = await createUsher(t, { graphql: { ...graphql, maxCost: 100 } })
      const waiting = async () => ((await holding.app.usher.metrics()).find(({ name }) =>
        name === 'usher_graphql_operations_waiting')!.samples[0] as { value: number }).value
      const [socket, other] = [
        await (await openSocket(t, holding, { protocol })).init(),
        await (await openSocket(t, holding, { protocol })).init(),
      ]
      socket.start('running', '{ hold }')
      for (let round = 0; round < 30; round++) {
        socket.start('1', '{ hold }')
        socket.stop('1')
      }
      t.same(await socket.run('{ __typename }'), { data: { __typename: 'Query' } }, 'there was no error')
      t.equal(await waiting(), 0)
      // A query waits for a second at most.
      await until('a query waits', async () => {
        if (await waiting() === 1) return true
        other.stop('1')
        other.start('1', '{ hold }')
      }, 50)
      other.socket.terminate()
      await until('no query waits', async () => await waiting() === 0)
      release()
      t.same(await socket.next(), { type: socket.words.data, id: 'running', payload: { data: { hold: 1 } } })
    })

    t.test(`7.3 ${protocol}: errors have a message and a code, and reveal nothing internal`, async (t) => {
      const socket = await (await openSocket(t, usher, { protocol })).init(admin.headers)
      for (const [query, rest, expected] of [
        ['{ nothing }', {}, {
          errors: [
            { message: 'Cannot query field "nothing" on type "Query".', extensions: { code: 'GRAPHQL_INVALID' } },
          ],
        }],
        ['{', {}, {
          errors: [{ message: 'Syntax Error: Expected Name, found <EOF>.', extensions: { code: 'GRAPHQL_INVALID' } }],
        }],
        ['{}', {}, { errors: [{ message: 'Syntax Error: Expected Name, found "}".' }] }],
        ['query A { me { id } } query B { me { id } }', {}, {
          errors: [
            { message: 'operationName must name one of the operations', extensions: { code: 'GRAPHQL_INVALID' } },
          ],
        }],
        [
          'query A { me { id } }',
          { operationName: 'B' },
          { errors: [{ message: 'operationName must name one of the operations' }] },
        ],
        ['query ($id: ID!) { user(id: $id) { id } }', {}, {
          errors: [{
            message: 'Variable "$id" of required type "ID!" was not provided.', extensions: { code: 'GRAPHQL_INVALID' },
          }],
        }],
        [
          'query ($id: ID!) { user(id: $id) { id } }',
          { variables: { id: {} } },
          { errors: [{ message: /^Variable "\$id" got invalid value/ }] },
        ],
        ['query ($id: ID!) { user(id: $id) { id } }', { variables: { id: 'x' } }, {
          data: { user: null },
          errors: [{ message: 'User not found', path: ['user'], extensions: { code: 'USER_NOT_FOUND' } }],
        }],
        ['mutation { createPost(input: { title: "", content: "" }) { id } }', {}, {
          data: null,
          errors: [{
            message: 'title must not be blank',
            extensions: { code: 'INVALID_INPUT', errors: ['title must not be blank'] },
          }],
        }],
        [
          'subscription { postCreated @skip(if: true) { id } }',
          {},
          { errors: [{ message: 'The server failed', extensions: { code: 'INTERNAL_ERROR' } }] },
        ],
        [
          'subscription { postCreated(authorId: {}) { id } }',
          {},
          { errors: [{ message: 'ID cannot represent a non-string and non-integer value: {}' }] },
        ],
        [
          'subscription ($x: Int!) { postCreated { author { posts(first: $x) { id } } } }',
          { variables: { x: 'y' } },
          { errors: [{ message: /^Variable "\$x" got invalid value/ }] },
        ],
      ] as const) {
        for (let round = 0; round < 3; round++) t.match(await socket.run(query, rest), expected, query)
      }
      t.same(await socket.run('query A { me { role } } query B { me { name } }', { operationName: 'B' }), {
        data: { me: { name: 'Admin' } },
      })
      t.same(
        await socket.run('query ($n: Int = 1) { me { posts(first: $n) { __typename } } }', {
          variables: JSON.parse('{"__proto__":{},"constructor":{"prototype":1}}'),
        }),
        { data: { me: { posts: [{ __typename: 'Post' }] } } }
      )
    })
  }

  t.test('7.7 a ping gets a pong; a message of the older protocol can end the connection', async (t) => {
    const socket = await fresh(t)
    socket.send({ type: 'ping', payload: { a: 1 } })
    t.same(await socket.next(), { type: 'pong' })
    socket.send({ type: 'pong' })
    t.same(await socket.run('{ me { id } }'), { data: { me: null } })
    const old = await fresh(t, 'graphql-ws')
    t.same(await old.run('{ me { id } }'), { data: { me: null } })
    old.send({ type: 'connection_terminate' })
    t.equal(await old.closed, 1005)
  })

  t.test('7.7 a socket with another subprotocol, or none, is rejected', async (t) => {
    const url = `ws://${await hostOf(usher)}/graphql`
    for (const offered of ['other', ['other', 'mqtt']]) {
      const [{ message }] = await once(new WebSocket(url, offered), 'close').catch((error) => [error])
      t.equal(message, 'Server sent no subprotocol')
    }
    const [code] = await once(new WebSocket(url), 'close')
    t.equal(code, 4406)
    const preferred = new WebSocket(url, ['other', 'graphql-ws', 'graphql-transport-ws'])
    await once(preferred, 'open')
    t.equal(preferred.protocol, 'graphql-transport-ws')
    preferred.terminate()
  })
})

t.test('7.7 a page may open a socket at its own origin and at configured origins, or at any if `*` is configured', async (t) => {
  const origins = ['https://app.example.com', 'tauri://localhost']
  const usher = await createUsher(t, { origins, publicUrl: 'https://api.example.com' })
  const host = await hostOf(usher)
  const connect = async (origin: string, at = host) => {
    const socket = new WebSocket(`ws://${at}/graphql`, protocols[0], { origin })
    const [response] = await Promise.race([
      once(socket, 'open').then(() => [{ statusCode: 101 }]),
      once(socket, 'unexpected-response').then(([, response]) => [response]),
    ])
    socket.terminate()
    return response.statusCode
  }
  const allowed = [
    `http://${host}`, `https://${host}`, ...origins, 'https://api.example.com', 'HTTPS://App.Example.com:443',
  ]
  for (const origin of allowed) {
    t.equal(await connect(origin), 101, origin)
  }
  for (const origin of [
    'https://evil.example.com', 'tauri://evil', 'https://app.example.com.evil.com', 'http://app.example.com', 'null',
    `http://${host}.evil.com`,
  ]) {
    t.equal(await connect(origin), 403, origin)
  }
  const open = await createUsher(t, { origins: ['*'] })
  t.equal(await connect('https://evil.example.com', await hostOf(open)), 101)
})
