import { GraphQLError, type GraphQLResolveInfo } from 'graphql'
import t from 'tap'
import type { GraphqlExtension, UsherGraphQLContext } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { createPost, openSocket, post } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'

const words = 'words '.repeat(200)

/** A host with lists, long texts, and resolvers that never finish. */
function createExtension (signals: AbortSignal[] = []): GraphqlExtension {
  const things = (_: unknown, { first = 3 }: { first?: number }) =>
    Array.from({ length: first }, () => ({ name: words, data: { words } }))
  const hang = (_: unknown, __: unknown, { signal }: UsherGraphQLContext) => {
    signals.push(signal)
    return new Promise<never>(() => {})
  }
  return {
    typeDefs: `
      extend type Query {
        things: [Thing!]! few: [Thing!]! @listSize(assumedSize: 3) paged(first: Int): [Thing!]! counted(count: Int!): [Thing!]! @listSize(slicingArguments: ["count"])
        connection(first: Int = 10): Things! dear: Int @cost(weight: 40) one: Either hang: Int hangs: [Int] hangLate: Late
      }
      type Things { nodes: [Thing!]! }
      type Thing { name: String!, data: Json, more: [Thing!]! }
      type Other { name: String! things: [Thing!]! }
      type Late { hang: Int, loaded: Int }
      union Either = Thing | Other
      scalar Json
    `,
    resolvers: {
      Query: {
        things,
        few: things,
        paged: things,
        counted: things,
        connection: (_: unknown, { first }: { first: number }) => ({ nodes: things(_, { first }) }),
        dear: () => 1,
        one: () => ({ __typename: 'Thing', name: 'x' }),
        hang,
        hangs: (...given: Parameters<typeof hang>) => [1, hang(...given)],
        hangLate: async () => ({}),
      },
      Late: { hang },
    },
    loaders: { Late: { loaded: (_, { signal }) => hang(_, _, { signal } as UsherGraphQLContext) } },
  }
}

t.test('12.6 fields of a host cost what the directives say, and lists are as long as their arguments', async (t) => {
  const usher = await createUsher(t, { graphql: { ...createExtension(), maxCost: 120 } })
  const fits = [
    '{ things { name } }', '{ few { name data } }', '{ paged(first: 59) { name } }', '{ counted(count: 59) { name } }',
    '{ connection(first: 50) { nodes { name } } }', '{ a: dear b: dear c: dear }',
    '{ one { __typename ... on Thing { name } ... on Other { things { name } } } }',
  ]
  const exceeds = [
    '{ things { name data } }', '{ few { more { name } data } things { name } }', '{ paged(first: 60) { name } }',
    '{ counted(count: 60) { name } }', '{ connection(first: 60) { nodes { name } } }',
    '{ a: dear b: dear c: dear d: dear }',
    '{ one { ... on Thing { more { name } } ... on Other { ...F } } } fragment F on Other { things { name } }',
  ]
  for (const query of fits) {
    t.not((await post(usher, { query })).errors?.[0]?.extensions.code, 'OPERATION_TOO_COSTLY', query)
  }
  for (const query of exceeds) {
    t.equal((await post(usher, { query })).errors?.[0]?.extensions.code, 'OPERATION_TOO_COSTLY', query)
  }
  const query = 'query ($first: Int) { paged(first: $first) { name } }'
  for (const [first, isTooMuch] of [[59, false], [60, true], [1e9, true], [null, false]] as const) {
    t.equal(
      (await post(usher, { query, variables: { first } })).errors?.[0]?.extensions.code === 'OPERATION_TOO_COSTLY',
      isTooMuch,
      `${first}`
    )
  }
})

t.test('12.6 values of a host count towards the size of a response', async (t) => {
  const usher = await createUsher(t, { graphql: { ...createExtension(), maxResponseBytes: 100_000 } })
  t.equal((await post(usher, { query: '{ paged(first: 30) { name data } }' })).errors, undefined)
  for (const query of ['{ paged(first: 100) { name } }', '{ paged(first: 100) { data } }']) {
    for (let round = 0; round < 3; round++) {
      t.equal((await post(usher, { query })).errors![0]!.extensions.code, 'OPERATION_TOO_COSTLY', query)
    }
  }
})

nightly('12.6 at most a hundred fields of a host that fail are listed, and one error says that there are more', async (t) => {
  const fail = () => { throw new GraphQLError('Not today', { extensions: { code: 'CLOSED' } }) }
  const usher = await createUsher(t, {
    graphql: {
      typeDefs: `
        extend type Query { rows(first: Int): [Row!]! }
        type Row { sync: Int, async: Int, loaded: Int, required: Int!, self: Row, fine: Int }
      `,
      resolvers: {
        Query: {
          rows: (_: unknown, { first }: { first: number }) =>
            Array.from({ length: first }, () => ({ fine: 1, self: {} })),
        },
        Row: { sync: fail, async: async () => fail() },
      },
      loaders: {
        Row: {
          loaded: async (rows) => rows.map(() => new GraphQLError('Not today', { extensions: { code: 'CLOSED' } })),
        },
      },
    },
  })
  const failure = { message: 'Not today', extensions: { code: 'CLOSED' } }
  const omitted = {
    message: 'More than 100 fields have failed: the other errors are left out', extensions: { code: 'TOO_MANY_ERRORS' },
  }
  for (const field of ['sync', 'async', 'loaded']) {
    for (let round = 0; round < 3; round++) {
      const { data, errors } = await post(usher, { query: `{ rows(first: 50) { a: ${field} b: ${field} fine } }` })
      t.match(errors, Array.from({ length: 100 }, () => failure), field)
      t.same([errors!.length, new Set(errors!.map(({ path }) => path!.join())).size], [100, 100])
      t.same(data.rows[49], { a: null, b: null, fine: 1 })
      const more = await post(usher, { query: `{ rows(first: 51) { a: ${field} b: ${field} fine } }` })
      t.match(more.errors!.slice(0, 100), Array.from({ length: 100 }, () => failure), field)
      t.same(more.errors!.slice(100), [omitted])
      t.same(more.data.rows[50], { a: null, b: null, fine: 1 })
    }
  }
  for (let round = 0; round < 3; round++) {
    const { data, errors } = await post(
      usher, { query: '{ rows(first: 60) { a: self { required } b: self { required } } }' }
    )
    t.match(
      errors!.slice(0, 100),
      Array.from({ length: 100 }, () => ({ message: 'The server failed', path: ['rows', /^/, /^/, 'required'] }))
    )
    t.same(errors!.slice(100), [omitted])
    t.same(data.rows[59], { a: null, b: null })
  }
})

nightly('1.13 the lines before a failing field are not counted again for each error, and its location is still right', async (t) => {
  const texts: unknown[] = []
  const fail = (_: unknown, __: unknown, ___: unknown, { fieldNodes }: GraphQLResolveInfo) => {
    texts.push(fieldNodes[0]!.loc!.source.body)
    throw new GraphQLError('Not today')
  }
  // The host's error has a member that graphql-js takes for nodes of the document.
  const odd = () => { throw Object.assign(new Error('Not here'), { statusCode: 409, nodes: [{}] }) }
  const typeDefs = 'extend type Query { failing: Int, odd: Int } extend type Post { failing: Int }'
  const graphql: GraphqlExtension = { typeDefs, resolvers: { Query: { failing: fail, odd }, Post: { failing: fail } } }
  const usher = await createUsher(t, { graphql })
  const socket = await (await openSocket(t, usher)).init()
  for (let round = 0; round < 3; round++) {
    t.match(
      (await post(usher, { query: '{\n\r\n  failing }' })).errors,
      [{ message: 'Not today', locations: [{ line: 3, column: 3 }] }]
    )
    t.match((await post(usher, { query: '{ odd }' })).errors, [{ message: 'Not here', path: ['odd'] }])
    t.match(
      (await socket.run('{\r    failing }')).errors, [{ message: 'Not today', locations: [{ line: 2, column: 5 }] }]
    )
  }
  socket.start('1', 'subscription { postCreated {\n failing } }')
  await socket.settle()
  await createPost(usher, usher.admin)
  t.match((await socket.next()).payload, { errors: [{ message: 'Not today', locations: [{ line: 2, column: 2 }] }] })
  t.same(texts, Array.from({ length: 7 }, () => ''), 'there is no text to count them in')
})

t.test('12.6 a resolver or loader of a host that never finishes fails, and its signal is aborted', async (t) => {
  const signals: AbortSignal[] = []
  const usher = await createUsher(t, { graphql: { ...createExtension(signals), resolverSeconds: 0.1 } })
  for (const query of ['{ hang }', '{ hangLate { hang } }', '{ hangLate { loaded } }', '{ hangs }']) {
    const { errors } = await post(usher, { query })
    t.match(
      errors, [{ message: 'The server took too long, try again', extensions: { code: 'RESOLVER_TIMEOUT' } }], query
    )
  }
  t.same(signals.map(({ aborted }) => aborted), [true, true, true, true])
  const socket = await (await openSocket(t, usher)).init()
  t.equal((await socket.run('{ hang }')).errors![0]!.extensions.code, 'RESOLVER_TIMEOUT')
})
