// A host that knows Usher by its published declarations alone, under settings that are not ours.
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import postgres from 'postgres'
import usher, {
  type Action, type Actor, type Policy, type Role, type Rule, type Usher, type UsherOptions,
} from 'fastify-usher'

declare module 'fastify' {
  interface FastifyInstance { others: Usher }
}
declare module 'fastify-usher' {
  interface Register { policy: 'bookmarks:create' }
}

const app: FastifyInstance = Fastify()

await app.register(usher, { prefix: '/accounts', databaseUrl: process.env['DATABASE_URL'] })
await app.register(usher, {
  prefix: 'others',
  logLevel: 'warn',
  sql: postgres('postgres://127.0.0.1/others', { max: 5 }),
  schema: 'others',
  decoratorName: 'others',
  publicUrl: process.env['PUBLIC_URL'],
  admin: { email: 'admin@example.com', password: 'correct horse' },
  policy: { 'users:create': (actor, { ownerId }) => actor.role === 'admin' || ownerId === undefined },
  onFirstAdmin: ({ email, password }) => { [email, password].map((text) => text.toUpperCase()) },
})
void app.register(async (scope) => scope.register(usher, {}), { prefix: '/scope' })

app.get('/mine', { onRequest: app.usher.authenticate }, async ({ actor }) => actor?.id)
app.get(
  '/ours',
  { onRequest: [app.usher.authenticate, async (request: FastifyRequest) => { request.actor = null }] },
  async () => null
)
app.addHook('onRequest', async (request: FastifyRequest, reply: FastifyReply): Promise<void> =>
  app.usher.authenticate(request, reply))
app.get<{ Params: { id: string } }>(
  '/theirs/:id', { onRequest: app.usher.authenticate }, async ({ actor, params }) => actor?.id === params.id
)

export const options: UsherOptions = { accessTokenSeconds: 60, origins: ['https://example.com'] }
export const rule: Rule = (actor: Actor): boolean => actor.role === 'admin'
export const policy: Partial<Policy> = { 'posts:delete': rule }
export const action: Action = 'posts:delete'
export const role: Role = 'user'
export const given: Usher = app.usher

app.get('/bookmarks', { onRequest: app.others.allow('bookmarks:create') }, async () =>
  (await app.others.users.get('x')).email.length)
export const hooked: UsherOptions = {
  policy: { 'bookmarks:create': rule },
  hooks: {
    beforeUserCreate: (user, { via }) => via === 'api' ? undefined : { ...user, name: user.name.trim() },
    onUserCreate: async ({ id }, { sql }) => { await sql`select ${id}` },
  },
}

// Hooks for routes fit a host with HTTP/2 as well.
const secure = Fastify({ http2: true, https: {} })
await secure.register(usher, { databaseUrl: '' })
secure.get('/mine', { onRequest: secure.usher.authenticate }, async ({ actor }) => actor?.id)
secure.post('/theirs/:id', { onRequest: secure.usher.allow('users:replace', ({ params }) => ({ ownerId: (params as { id: string }).id })) }, async (request) => {
  await secure.usher.sessions.start('', { request })
})
secure.addHook('onRequest', async (request, reply) => secure.usher.identify(request, reply))

// @ts-expect-error an action that nobody has defined
app.usher.allow('bookmarks:delete')
// @ts-expect-error an actor may not see every address
app.get('/address', async ({ actor }) => (await app.usher.users.get('x', { actor })).email.length)
// @ts-expect-error a typo
await app.register(usher, { databaseURL: '' })
// @ts-expect-error a wrong type
await app.register(usher, { poolSize: '10' })
// @ts-expect-error an action that there is not
await app.register(usher, { policy: { 'users:creat': () => true } })
// @ts-expect-error a rule that does not answer
await app.register(usher, { policy: { 'users:create': () => {} } })
// @ts-expect-error a role that there is not
export const none: Role = 'root'
// @ts-expect-error null without a token
app.get('/actor', async ({ actor }) => actor.id)
// @ts-expect-error what authenticate gives is not to be changed
app.usher.authenticate = async () => {}
// @ts-expect-error an actor is not to be changed
app.get('/actor', async ({ actor }) => { actor!.role = 'admin' })

// What is Usher's own is not seen by a host, nor the types of plugins that it does not use.
// @ts-expect-error
export const leaked1 = app.usherOptions
// @ts-expect-error
export const leaked2 = app.usherDatabase
// @ts-expect-error
export const leaked3 = app.usherAccess
// @ts-expect-error
export const leaked4 = app.jwt
// @ts-expect-error
export const leaked5 = app.graphql
// @ts-expect-error
export const leaked6 = app.swagger
app.get('/leaked', async (request, reply) => {
  // @ts-expect-error
  await request.parts()
  // @ts-expect-error
  void request.cookies
  // @ts-expect-error
  reply.secure()
  // @ts-expect-error
  return reply.graphql('')
})
