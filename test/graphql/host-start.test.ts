import Fastify from 'fastify'
import t from 'tap'
import usher, { type GraphqlExtension } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { mountOptions } from '../helpers/host.ts'
import { nightly } from '../helpers/nightly.ts'

const field = 'extend type User { bookmarks: [String!]! }'
const load = { User: { bookmarks: async (queries: readonly unknown[]) => queries.map(() => []) } }

/** What a host gets wrong, and what the start says about it. */
const mistakes: [extension: object, message: string | RegExp][] = [
  [
    { typeDefs: 7 },
    'usher: graphql.typeDefs must be a string of the schema definition language, a parsed document, or a list of these',
  ],
  [{ resolvers: {} }, /^usher: graphql.typeDefs must be/],
  [{ typeDefs: field, resolvers: [] }, 'usher: graphql.resolvers must be an object with a member for each type'],
  [
    { typeDefs: field, resolvers: { User: 'x' } },
    'usher: graphql.resolvers.User must be an object with a member for each field',
  ],
  [{ typeDefs: field, limit: 1 }, 'usher: graphql has no member limit'],
  [
    { typeDefs: [field, 'extend type {'] },
    /^usher: graphql.typeDefs cannot be parsed: .*\(line 1, column 13 of part 2\)$/,
  ],
  [{ typeDefs: '' }, /^usher: graphql.typeDefs cannot be parsed: /],
  [{ typeDefs: '{ me { id } }' }, 'usher: graphql.typeDefs must only have definitions of types'],
  [{ typeDefs: 'schema { query: Q } type Q { a: Int }' }, /^usher: graphql.typeDefs must not define the schema/],
  [
    { typeDefs: 'type User { a: Int }' },
    'usher: graphql.typeDefs redefine the type User of Usher: write "extend type User"',
  ],
  [{ typeDefs: 'enum Role { a }' }, 'usher: graphql.typeDefs redefine the type Role of Usher: choose another name'],
  [
    { typeDefs: 'extend enum Role { owner }' },
    /^usher: graphql.typeDefs extend Role, but of Usher's types only User, Post, /,
  ],
  [
    { typeDefs: 'extend type User { name: String }' },
    'usher: graphql.typeDefs redefine the field User.name of Usher: choose another name',
  ],
  [
    { typeDefs: 'extend type User implements Node interface Node { id: ID! }' },
    /^usher: graphql.typeDefs give User an interface/,
  ],
  [{ typeDefs: 'directive @shared on FIELD' }, /^usher: graphql.typeDefs redefine the directive @shared/],
  [{ typeDefs: 'extend type User { a: Unknown }' }, /^usher: graphql.typeDefs are invalid: Unknown type "Unknown"/],
  [{ typeDefs: 'extend type User { __a: Int }' }, /^usher: graphql.typeDefs are invalid: .*__a/],
  [
    { typeDefs: 'extend type Query { a: [UserConnection] }' },
    /^usher: graphql.typeDefs have a field Query.a of type UserConnection/,
  ],
  [
    { typeDefs: 'extend type Query { a: PostChange }' },
    /^usher: graphql.typeDefs have a field Query.a of type PostChange/,
  ],
  [{ typeDefs: 'type Note { a: Int } extend union PostChange = Note' }, /^usher: graphql.typeDefs extend PostChange/],
  [
    { typeDefs: 'type Note { a: Int } union Item = Note | User' },
    /^usher: graphql.typeDefs have User in the union Item/,
  ],
  [{ typeDefs: 'extend type User { a: Int @cost(weight: -1) }' }, /^usher: graphql.typeDefs have a negative cost/],
  [
    { typeDefs: 'extend type User { a: [Int] @listSize(slicingArguments: ["count"]) }' },
    /^usher: graphql.typeDefs name an argument count in @listSize of User.a/,
  ],
  [
    { typeDefs: field, resolvers: { User: { bookmark: () => [] } } },
    'usher: graphql.resolvers.User.bookmark is for a field that typeDefs does not define',
  ],
  [
    { typeDefs: field, resolvers: { User: { name: () => '' } } },
    'usher: graphql.resolvers.User.name is for a field of Usher, which cannot be replaced',
  ],
  [
    { typeDefs: field, resolvers: { User: { bookmarks: 7 } } },
    'usher: graphql.resolvers.User.bookmarks must be a function',
  ],
  [
    { typeDefs: field, resolvers: { Usr: {} } },
    'usher: graphql.resolvers.Usr is for a type that typeDefs does not define',
  ],
  [
    { typeDefs: field, resolvers: { DateTime: { serialize: () => '' } } },
    'usher: graphql.resolvers.DateTime is for a type of Usher',
  ],
  [
    { typeDefs: field, resolvers: { User: { bookmarks: () => [] } }, loaders: load },
    'usher: graphql.loaders.User.bookmarks has a resolver as well: remove one of them',
  ],
  [{ typeDefs: 'extend type Query { a: Int }' }, 'usher: graphql.resolvers.Query.a is required'],
  [
    { typeDefs: 'extend type Query { a: Int }', loaders: { Query: { a: () => [] } } },
    'usher: graphql.loaders.Query.a is for a field of Query: use resolvers',
  ],
  [
    { typeDefs: 'extend type Subscription { a: Int }', resolvers: { Subscription: { a: () => {} } } },
    'usher: graphql.resolvers.Subscription.a must be an object with a function subscribe',
  ],
  [
    { typeDefs: 'scalar Json', resolvers: { Json: { serialize: 7 } } },
    'usher: graphql.resolvers.Json.serialize must be a function',
  ],
  [
    { typeDefs: 'type Note { a: Int } union Item = Note', resolvers: { Item: {} } },
    'usher: graphql.resolvers.Item must have a function resolveType',
  ],
]

nightly('12.6 12.11 a mistake in what a host adds to /graphql stops the start, with the option and the field', async (t) => {
  const options = await mountOptions(t)
  for (const [graphql, message] of mistakes) {
    const app = Fastify({ pluginTimeout: 0 })
    const mounted = async () => {
      await app.register(usher, { ...options, graphql: graphql as GraphqlExtension })
      await app.ready()
    }
    await t.rejects(mounted(), { message }, String(message))
    await app.close()
  }
})

nightly('12.6 two mounts use the same objects, fields may be named like members of all objects, and nothing is changed', async (t) => {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const graphql = Object.freeze({
    typeDefs: Object.freeze(
      ['extend type Query { constructor: Thing, toString: String } type Thing { valueOf: String, isTypeOf: Int }']
    ),
    resolvers: Object.freeze({
      Query: Object.freeze({ constructor: () => ({ valueOf: 'a value', isTypeOf: 1 }), toString: () => 'text' }),
    }),
  })
  for (const prefix of ['/one', '/two']) {
    await app.register(usher, { ...await mountOptions(t, prefix), decoratorName: prefix, graphql })
  }
  for (const prefix of ['/one', '/two']) {
    const payload = { query: '{ constructor { valueOf isTypeOf } toString }' }
    const response = await app.inject({ method: 'POST', url: `${prefix}/graphql`, payload })
    t.same(response.json(), { data: { constructor: { valueOf: 'a value', isTypeOf: 1 }, toString: 'text' } })
  }
})

t.test('12.6 without posts, a host extends what is left, with posts of its own', async (t) => {
  const graphql: GraphqlExtension = {
    typeDefs: `
      extend type User { initial: String! }
      extend type Query { article: Post! }
      extend type Mutation { rename(to: String!): String! }
      extend type Subscription { ticks: Int! }
      type Post { id: ID!, by: User! }
    `,
    resolvers: {
      User: { initial: ({ name }) => name[0] },
      Query: { article: (_, __, { actor }) => ({ id: 'my-article', by: actor!.id }) },
      Mutation: { rename: (_, { to }) => to },
      Subscription: { ticks: { subscribe: async function * () { yield { ticks: 1 } } } },
    },
  }
  const usher = await createUsher(t, { without: ['posts'], graphql })
  const { headers } = usher.admin
  const read = async (query: string) => (await usher.inject('POST', '/graphql', { headers, payload: { query } })).json()
  t.same(await read('{ article { id by { id initial } } }'), {
    data: { article: { id: 'my-article', by: { id: usher.admin.id, initial: 'A' } } },
  })
  t.same(await read('{ users { nodes { initial } } }'), { data: { users: { nodes: [{ initial: 'A' }] } } })
  t.same(await read('mutation { rename(to: "x") }'), { data: { rename: 'x' } })
  const events = await usher.inject('POST', '/graphql', {
    headers: { ...headers, accept: 'text/event-stream' }, payload: { query: 'subscription { ticks }' },
  })
  t.match(events.body, '{"data":{"ticks":1}}')
  t.match(
    (await usher.inject('GET', '/docs/schema.graphql')).body, /type Mutation \{[^}]*\n {2}rename\(to: String!\): String!/
  )
  const mistake = { typeDefs: 'extend type Post { words: Int! }' }
  await t.rejects(
    createUsher(t, { without: ['posts'], graphql: mistake }), { message: /^usher: graphql\.typeDefs .*"Post"/ }
  )
})
