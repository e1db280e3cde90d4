import { GraphQLError } from 'graphql'
import t from 'tap'
import type { GraphqlExtension, UsherGraphQLContext } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { createPost, openSocket, post } from '../helpers/graphql.ts'

const typeDefs = `
  extend type User { bookmarks(first: Int = 10): [Bookmark!]!, secret: String, shout: String! }
  extend type Post { words: Int!, writtenBy: String!, members: [String!]! }
  extend type Query { whoami: String, fails(how: String!): String, friend(id: ID!): User, friends(ids: [ID!]!): [User!]!, latest(id: ID!): Post, item: Item, echo(value: Json): Json }
  extend type Mutation { bookmark(input: BookmarkInput!): Bookmark! }
  type Bookmark { url: String!, owner: User!, kind: Kind!, at: DateTime! }
  type Note { text: String! }
  union Item = Bookmark | Note
  enum Kind { page, file }
  input BookmarkInput { url: String!, kind: Kind = page }
  scalar Json
`
const rows = new Map<string, { url: string, owner: string, kind: string, at: Date }[]>()
const at = new Date(0)
let loads = 0

const errors: Record<string, () => unknown> = {
  rejection: () => Object.assign(new Error('Not today'), { statusCode: 422, code: 'NOT_TODAY' }),
  graphql: () => new GraphQLError('Closed', { extensions: { code: 'CLOSED', until: 'noon' } }),
  defect: () => new Error('select * from secrets'),
  text: () => 'select * from secrets',
  list: () => Object.assign(new Error('Two are wrong'), {
    statusCode: 422, code: 'WRONG', errors: ['one', new Error('select * from secrets')],
  }),
}

const extension: GraphqlExtension = {
  typeDefs,
  resolvers: {
    User: {
      secret: (user: { id: string }, _: unknown, { actor }: UsherGraphQLContext) =>
        actor?.id === user.id ? `the secret of ${user.id}` : null,
      shout: (user: { name: string }) => user.name.toUpperCase(),
    },
    Post: {
      words: async ({ content }: { content: string }) => content.split(' ').length,
      writtenBy: ({ authorId }: { authorId: string }) => authorId,
      members: (post: object) => Object.keys(post),
    },
    Query: {
      whoami: (_: unknown, __: unknown, { actor }: UsherGraphQLContext) => actor?.id ?? null,
      fails: async (_: unknown, { how }: { how: string }) => { throw errors[how]!() },
      friend: (_: unknown, { id }: { id: string }) => id,
      friends: (_: unknown, { ids }: { ids: string[] }) => ids.map((id) => ({ id, name: 'not this one' })),
      latest: (_: unknown, { id }: { id: string }) => ({ id }),
      item: () => ({ text: 'a note' }),
      echo: (_: unknown, { value }: { value: unknown }) => value,
    },
    Mutation: {
      bookmark: (_: unknown, { input }: { input: { url: string, kind: string } }, { actor }: UsherGraphQLContext) => {
        const bookmark = { ...input, owner: actor!.id, at }
        rows.set(actor!.id, [...rows.get(actor!.id) ?? [], bookmark])
        return bookmark
      },
    },
    Item: { resolveType: ({ text }: { text?: string }) => text === undefined ? 'Bookmark' : 'Note' },
    Json: { serialize: (value: unknown) => value, parseValue: (value: unknown) => value },
  },
  loaders: {
    User: {
      bookmarks: async (queries) => {
        loads++
        return queries.map(({ obj, params }) => (rows.get(obj.id) ?? []).slice(0, params.first))
      },
    },
  },
}

const usher = await createUsher(t, { graphql: extension })

t.test('12.6 a host adds fields and types, with the actor and a loader for all rows at once', async (t) => {
  const users = [await usher.createUser({ name: 'Ada' }), await usher.createUser({ name: 'Bea' }), usher.admin]
  const bookmark = 'mutation ($url: String!) { bookmark(input: { url: $url }) { url kind at owner { name email } } }'
  const made = await post(usher, { query: bookmark, variables: { url: 'https://a.example' } }, users[0])
  t.same(made, {
    data: {
      bookmark: {
        url: 'https://a.example', kind: 'page', at: at.toISOString(), owner: { name: 'Ada', email: users[0]!.email },
      },
    },
  })
  t.equal(
    (await post(usher, { query: bookmark, variables: { url: 'x' } })).errors![0]!.extensions.code,
    'UNAUTHENTICATED',
    'a mutation needs a token'
  )

  for (const round of ['interpreted', 'compiled', 'compiled again']) {
    loads = 0
    const { data } = await post(
      usher, { query: '{ users { nodes { id shout secret bookmarks { url owner { shout } } } } }' }, users[0]
    )
    const ada = data.users.nodes.find(({ id }: { id: string }) => id === users[0]!.id)
    t.same(ada, {
      id: ada.id,
      shout: 'ADA',
      secret: `the secret of ${ada.id}`,
      bookmarks: [{ url: 'https://a.example', owner: { shout: 'ADA' } }],
    }, round)
    t.same(
      data.users.nodes.map(({ secret }: { secret: string | null }) => secret !== null),
      [false, true, false].map((_, index) => data.users.nodes[index].id === ada.id),
      round
    )
    t.equal(loads, 1, `${round}: one load for all users`)
  }
  t.same((await post(usher, { query: '{ me { bookmarks(first: 0) { url } } whoami }' }, users[0])).data, {
    me: { bookmarks: [] }, whoami: users[0]!.id,
  })
  t.same((await post(usher, { query: '{ whoami }' })).data, { whoami: null })

  await createPost(usher, users[1]!)
  const { data } = await post(
    usher, { query: '{ users { nodes { posts { writtenBy } } } posts { nodes { writtenBy words members } } }' }
  )
  t.same(data.posts.nodes, [{
    writtenBy: users[1]!.id,
    words: 1,
    members: ['id', 'position', 'epoch', 'authorId', 'title', 'content', 'createdAt'],
  }])
  t.ok(data.users.nodes.some(({ posts }: { posts: unknown[] }) => posts.length === 1))

  const socket = await (await openSocket(t, usher)).init({ authorization: users[0]!.headers.authorization })
  t.same((await socket.run('{ whoami me { bookmarks { url } } }')).data, {
    whoami: users[0]!.id, me: { bookmarks: [{ url: 'https://a.example' }] },
  })
  t.same((await socket.run('{ item { __typename ... on Note { text } } }')).data, {
    item: { __typename: 'Note', text: 'a note' },
  })
  const { data: { echo } } = await post(
    usher, { query: 'query ($value: Json) { echo(value: $value) }', variables: { value: { deep: [1, null] } } }
  )
  t.same(echo, { deep: [1, null] })
  t.same((await post(usher, { query: '{ echo(value: { a: [1, "b"] }) }' })).data, { echo: { a: [1, 'b'] } })
  const { data: { __schema: { types } } } = await post(usher, { query: '{ __schema { types { name } } }' })
  t.ok(types.some(({ name }: { name: string }) => name === 'Bookmark'))
})

t.test('12.6 the types of interfaces and unions are found by a function or by __typename, and failures are errors of their fields', async (t) => {
  const values = [
    { is: 'Cat', name: 'Mia' }, { is: 'Dog', name: 'Rex' }, { is: 'none', name: 'x' }, { is: 'fail', name: 'y' }, null,
  ]
  const usher = await createUsher(t, {
    graphql: {
      typeDefs: `
        extend type Query { named: [Named], pets: [Pet], pet: Pet, odd: Pet, none: Pet, late: [[Pet!]!]! }
        interface Named { name: String } type Cat implements Named { name: String } type Dog implements Named { name: String }
        union Pet = Cat | Dog
      `,
      resolvers: {
        Query: {
          named: () => values,
          pets: () => values.slice(0, 2).map(({ is, name }: any) => ({ __typename: is, name })),
          pet: async () => ({ __typename: 'Dog', name: 'Rex' }),
          odd: () => 5,
          none: () => ({ name: 'x' }),
          late: async () => [[{ __typename: 'Cat', name: 'Mia' }]],
        },
        Named: {
          resolveType: async ({ is }: { is: string }) => {
            if (is === 'fail') throw Object.assign(new Error('Not today'), { statusCode: 403, code: 'NOT_TODAY' })
            return is === 'none' ? undefined : is
          },
        },
      },
    },
  })
  const socket = await (await openSocket(t, usher)).init()
  const ask = (query: string) => Promise.all([post(usher, { query }), socket.run(query)])
  for (let round = 0; round < 3; round++) {
    for (const { data, errors } of await ask('{ named { __typename name } }')) {
      t.same(data.named, [{ __typename: 'Cat', name: 'Mia' }, { __typename: 'Dog', name: 'Rex' }, null, null, null])
      t.match(errors!.find(({ path }) => path![1] === 3), { message: 'Not today', extensions: { code: 'NOT_TODAY' } })
      t.same(errors!.map(({ path }) => path![1]).sort(), [2, 3])
    }
    for (const { data, errors } of await ask(
      '{ pets { ... on Cat { name } ... on Dog { name } } pet { __typename } late { __typename } }'
    )) {
      t.equal(errors, undefined)
      t.same(
        data, { pets: [{ name: 'Mia' }, { name: 'Rex' }], pet: { __typename: 'Dog' }, late: [[{ __typename: 'Cat' }]] }
      )
    }
    for (const { data, errors } of await ask('{ odd { __typename } none { __typename } }')) {
      t.same(data, { odd: null, none: null })
      t.equal(errors!.length, 2)
    }
  }
})

t.test('12.6 errors of a host: rejections and each GraphQLError are sent, others only say that the server failed', async (t) => {
  const query = 'query ($how: String!) { fails(how: $how) }'
  for (let round = 0; round < 3; round++) {
    const failures = Object.keys(errors)
      .map(async (how) => (await post(usher, { query, variables: { how } })).errors![0]!)
    const [rejection, graphql, defect, text, list] = await Promise.all(failures)
    t.match(rejection, { message: 'Not today', path: ['fails'], extensions: { code: 'NOT_TODAY' } })
    t.match(graphql, { message: 'Closed', path: ['fails'], extensions: { code: 'CLOSED', until: 'noon' } })
    t.match(list, { message: 'Two are wrong', path: ['fails'], extensions: { code: 'WRONG' } })
    for (const error of [defect, text]) {
      t.match(error, { message: 'The server failed', extensions: { code: 'INTERNAL_ERROR' } })
    }
  }
})

t.test('12.6 users and posts that a host refers to are read by Usher, which decides who may see them', async (t) => {
  const usher = await createUsher(t, {
    graphql: extension,
    policy: { 'users:read': (reader) => reader !== null, 'users:read-email': (reader) => reader?.role === 'admin' },
  })
  const ada = await usher.createUser({ name: 'Ada' })
  const postId = await createPost(usher, ada, 'Hello')
  const unknown = '00000000-0000-4000-8000-000000000000'
  const query =
    'query ($ids: [ID!]!, $id: ID!, $unknown: ID!) { friends(ids: $ids) { name email } friend(id: $unknown) { name } latest(id: $id) { title } }'
  const variables = { ids: [ada.id, unknown, 'x', ada.id.toUpperCase()], id: postId, unknown }
  t.same(await post(usher, { query, variables }, ada), {
    data: {
      friends: [{ name: 'Ada', email: null }, { name: 'Ada', email: null }], friend: null, latest: { title: 'Hello' },
    },
  })
  const { data, errors } = await post(
    usher, { query: 'query ($id: ID!) { friend(id: $id) { name } }', variables: { id: ada.id } }
  )
  t.same(data, { friend: null })
  t.equal(errors![0]!.extensions.code, 'UNAUTHENTICATED')
})
