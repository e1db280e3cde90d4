// The baseline: the obvious implementation, on Usher's own tables. It uses Fastify with response schemas, Kysely with
// the official dialect, @fastify/jwt verifying each token, and mercurius with JIT and its loaders.
import type { AddressInfo } from 'node:net'
import fastifyJwt from '@fastify/jwt'
import Fastify, { type FastifyRequest } from 'fastify'
import { Kysely, sql } from 'kysely'
import { PostgresJSDialect } from 'kysely-postgres-js'
import mercurius from 'mercurius'
import { createClient } from '../db/driver/client.ts'
import { v7 as uuid } from 'uuid'
import type { Tables } from '../db/tables/index.ts'

const user = {
  type: 'object',
  properties: {
    ...Object.fromEntries(
      ['id', 'name', 'email', 'role', 'createdAt', 'updatedAt'].map((name) => [name, { type: 'string' }])
    ),
    emailVerified: { type: 'boolean' },
    disabled: { type: 'boolean' },
  },
}
const columns = [
  'id', 'name', 'email', 'email_verified as emailVerified', 'role', 'disabled', 'created_at as createdAt',
  'updated_at as updatedAt',
] as const
const postColumns = ['id', 'author_id as authorId', 'title', 'content', 'created_at as createdAt'] as const

const client = createClient(process.env['DATABASE_URL']!, { max: 10 })
const db = new Kysely<Tables>({ dialect: new PostgresJSDialect({ postgres: client }) }).withSchema('usher')
const [key] = await db.selectFrom('signing_keys').select(['private_key', 'public_key']).execute()

const app = Fastify()
await app.register(fastifyJwt, {
  secret: { private: key!.private_key, public: key!.public_key },
  sign: { algorithm: 'EdDSA' },
  verify: { algorithms: ['EdDSA'], allowedIss: 'usher', allowedAud: 'usher' },
})

const getUser = (id: string) => db.selectFrom('users').select(columns).where('id', '=', id).executeTakeFirst()

app.get<{ Params: { id: string } }>(
  '/api/users/:id', { schema: { response: { 200: user } } }, async (request) => getUser(request.params.id)
)

app.get<{ Querystring: { role: 'user', limit: number } }>('/api/users', {
  schema: {
    querystring: { type: 'object', properties: { role: { type: 'string' }, limit: { type: 'integer', default: 100 } } },
    response: { 200: { type: 'array', items: user } },
  },
}, async ({ query: { role, limit } }) =>
  db.selectFrom('users').select(columns).where('role', '=', role).orderBy('id', 'desc').limit(limit).execute())

app.get('/api/protected', { onRequest: (request) => request.jwtVerify() }, async (request) =>
  ({ user: await getUser((request.user as { sub: string }).sub) }))

app.post<{ Body: { name: string, email: string } }>('/api/users', {
  onRequest: (request) => request.jwtVerify(),
  schema: {
    body: {
      type: 'object', required: ['name', 'email'], properties: { name: { type: 'string' }, email: { type: 'string' } },
    },
    response: { 201: user },
  },
}, async ({ body: { name, email } }, reply) => reply.code(201).send(
  await db.insertInto('users').values({ id: uuid(), name, email, role: 'user' })
    .returning(columns).executeTakeFirstOrThrow()))

type Change = { Params: { id: string }, Body: { name: string, email?: string, role?: 'user' } }
const change = (required: string[]) => ({
  onRequest: (request: FastifyRequest) => request.jwtVerify(),
  schema: {
    body: {
      type: 'object',
      required,
      properties: { name: { type: 'string' }, email: { type: 'string' }, role: { type: 'string' } },
    },
    response: { 200: user },
  },
})
const update = async ({ params: { id }, body: { name, email, role } }: FastifyRequest<Change>) =>
  await db.updateTable('users').set({ name, ...email && { email }, ...role && { role }, updated_at: sql`now()` })
    .where('id', '=', id).returning(columns).executeTakeFirstOrThrow()
app.put<Change>('/api/users/:id', change(['name', 'email']), update)
app.patch<Change>('/api/users/:id', change([]), update)

await app.register(mercurius, {
  jit: 1,
  schema: `
    type User { id: ID! name: String! email: String! posts(first: Int = 50): [Post!]! }
    type Post { id: ID! title: String! content: String! }
    type Query { user(id: ID!): User }
    type Mutation { createPost(input: CreatePostInput!): Post! }
    input CreatePostInput { title: String! content: String! }`,
  context: async (request) =>
    ({ claims: request.headers.authorization ? await request.jwtVerify<{ sub: string }>() : null }),
  resolvers: {
    Query: { user: (_: unknown, { id }: { id: string }) => getUser(id) },
    Mutation: {
      createPost: (_: unknown, { input }: { input: { title: string, content: string } }, context: unknown) =>
        db.insertInto('posts')
          .values({ id: uuid(), author_id: (context as { claims: { sub: string } }).claims.sub, ...input })
          .returning(postColumns).executeTakeFirstOrThrow(),
    },
  },
  loaders: {
    User: {
      async posts (queries: { obj: { id: string }, params: { first: number } }[]) {
        const rows = await db.selectFrom('posts').select(postColumns)
          .where('author_id', '=', sql<string>`any(${queries.map(({ obj }) => obj.id)}::uuid[])`)
          .orderBy('id', 'desc').execute()
        return queries.map(({ obj, params }) => rows.filter((row) => row.authorId === obj.id).slice(0, params.first))
      },
    },
  } as never,
})

await app.listen({ port: Number(process.env['PORT'] ?? 0), host: '127.0.0.1' })
console.log(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
