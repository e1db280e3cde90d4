import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import Fastify, { type FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import t, { type Test } from 'tap'
import usherPlugin from '../../app.ts'
import { addRoutes } from '../../node/config/routes.ts'
import httpDefaults from '../../node/http/defaults.ts'
import { NODE_DEADLINES } from '../../node/process/deadlines.ts'
import type { UsherConfig } from '../../schema/options/config.ts'
import { withUsers, type TestUsher } from '../helpers/app.ts'
import { mountOptions } from '../helpers/host.ts'
import { nightly } from '../helpers/nightly.ts'

// What Fastify, a plugin, the app itself and Usher throw on routes of a host.
const tooMany = () => { throw Object.assign(new Error('Slow down'), { statusCode: 429, code: 'SLOW_DOWN' }) }
const failing = () => { throw new Error('connect to 10.0.0.7 as root') }

function addGuarded (app: FastifyInstance): void {
  const { authenticate, allow, requireRole, users } = app.usher
  const schema = { response: { 403: { type: 'object', required: ['reason'], properties: { reason: { type: 'string' } } } } }
  const answer = async () => ({})
  app.get('/mine', { onRequest: authenticate }, answer)
  app.get('/admin', { onRequest: requireRole('admin') }, answer)
  app.get('/described', { schema, onRequest: requireRole('admin') }, answer)
  app.get('/create', { preHandler: [authenticate, allow('users:create')] }, answer)
  app.get('/recent', { onRequest: allow('users:list', { maxAge: 0 }) }, answer)
  app.get('/nobody', { onRequest: authenticate }, async ({ actor }) => users.delete(actor!.id, { actor: null }))
  app.get('/others/:id', { onRequest: authenticate }, async ({ actor, params }) =>
    users.delete((params as { id: string }).id, { actor }))
  app.get('/limited', tooMany)
  app.get('/failing', failing)
  app.get('/wrong', { schema: { querystring: { type: 'object', required: ['q'] } } }, answer)
}

interface Visitor { authorization?: string }

/** Calls the routes as nobody, as a user and with an API key with a list of actions, and returns what they get. */
async function callAll (usher: TestUsher, prefix: string) {
  const user = await usher.createUser()
  const { key } = await usher.app.usher.apiKeys.create(user.id, { name: 'limited', actions: ['posts:read'] })
  const call = async (path: string, headers: Visitor) => {
    const { statusCode, headers: { 'www-authenticate': challenge }, payload } = await usher.app.inject({ url: `${prefix}${path}`, headers: { ...headers } })
    return [statusCode, ...challenge === undefined ? [] : [challenge], JSON.parse(payload)]
  }
  const limited = { authorization: `Bearer ${key}` }
  return {
    nobody: await call('/mine', {}),
    'an invalid token': await call('/mine', { authorization: 'Bearer x' }),
    'a limited key': await call('/mine', limited),
    'a limited key for an admin': await call('/admin', limited),
    'a user for an admin': await call('/admin', user.headers),
    'another schema': await call('/described', user.headers),
    'the policy': await call('/create', user.headers),
    'an old token': await call('/recent', user.headers),
    'an operation of nobody': await call('/nobody', user.headers),
    'an operation': await call(`/others/${usher.admin.id}`, user.headers),
    'a limit': await call('/limited', {}),
    'a failure': await call('/failing', {}),
    'an input': await call('/wrong', {}),
  }
}

const UNAUTHENTICATED = { error: 'A bearer token is required', code: 'UNAUTHENTICATED' }
const FORBIDDEN = { error: 'You may not do this', code: 'FORBIDDEN' }
const inShapeOfUsher = {
  nobody: [401, 'Bearer', UNAUTHENTICATED],
  'an invalid token': [401, 'Bearer error="invalid_token"', { error: 'The bearer token is invalid, expired or revoked', code: 'INVALID_TOKEN' }],
  'a limited key': [403, FORBIDDEN],
  'a limited key for an admin': [403, FORBIDDEN],
  'a user for an admin': [403, FORBIDDEN],
  'another schema': [403, FORBIDDEN],
  'the policy': [403, FORBIDDEN],
  'an old token': [403, 'Bearer error="insufficient_user_authentication", max_age=0', { code: 'STEP_UP_REQUIRED' }],
  'an operation of nobody': [401, 'Bearer', UNAUTHENTICATED],
  'an operation': [403, FORBIDDEN],
  'a limit': [429, { error: 'Slow down', code: 'SLOW_DOWN' }],
  'a failure': [500, { error: 'The server failed', code: 'INTERNAL_ERROR' }],
  'an input': [400, { errors: ["querystring must have required property 'q'"] }],
}

/** Adds routes in scopes of every kind: the given one, one with a prefix, one inside it, and one that is none. */
const scopes: Record<string, string> = { the: '', 'one with a': '/a', 'one inside of': '/a/b', 'a plugin without': '/c' }
async function addEverywhere (app: FastifyInstance): Promise<void> {
  addGuarded(app)
  await app.register(async (a) => {
    addGuarded(a)
    await a.register(async (b) => addGuarded(b), { prefix: '/b' })
  }, { prefix: '/a' })
  await app.register(async (c) => {
    await c.register(fp(async (own: FastifyInstance) => addGuarded(own)))
  }, { prefix: '/c' })
}

nightly('14.6 what routes of a configuration file reject has the format of 1.3 in every scope, and shows no cause', async (t) => {
  const usher = await startNode(t, async (app) => addEverywhere(app as unknown as FastifyInstance))
  for (const [name, prefix] of Object.entries(scopes)) {
    t.match(await callAll(usher, prefix), inShapeOfUsher, `${name} scope`)
  }
  t.same((await usher.inject('GET', '/none')).json(), { error: 'Not found', code: 'NOT_FOUND' })
})

nightly('14.6 routes of a configuration file may have an error handler of their own', async (t) => {
  const usher = await startNode(t, async (app) => {
    app.setErrorHandler((error: Error & { statusCode: number, code: string }, _, reply) =>
      reply.code(error.statusCode).send({ mine: error.code }))
    app.get('/admin', { onRequest: app.usher.requireRole('admin') }, async () => ({}))
  })
  const { headers } = await usher.createUser()
  const response = await usher.app.inject({ url: '/admin', headers })
  t.same([response.statusCode, response.json()], [403, { mine: 'FORBIDDEN' }])
  t.same((await usher.inject('GET', '/api/protected')).json(), UNAUTHENTICATED, 'only they')
})

t.test("12.1 guards throw errors with a status, a code and headers to the host's handler, and never a cause", async (t) => {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const options = await mountOptions(t)
  await app.register(usherPlugin, options)
  await addEverywhere(app)
  const usher = await withUsers(app, options)
  const forbidden = { statusCode: 403, code: 'FORBIDDEN', error: 'Forbidden', message: 'You may not do this' }
  for (const [name, prefix] of Object.entries(scopes)) {
    const answers = await callAll(usher, prefix)
    t.match(answers, {
      nobody: [401, 'Bearer', { statusCode: 401, code: 'UNAUTHENTICATED', error: 'Unauthorized', message: 'A bearer token is required' }],
      'an invalid token': [401, 'Bearer error="invalid_token"', { code: 'INVALID_TOKEN' }],
      'a limited key': [403, forbidden],
      'a user for an admin': [403, forbidden],
      'the policy': [403, forbidden],
      'an old token': [403, 'Bearer error="insufficient_user_authentication", max_age=0', { code: 'STEP_UP_REQUIRED' }],
      'an operation': [403, forbidden],
    }, `${name} scope`)
  }
})

nightly("12.1 with app.usher.errorHandler, the routes of a host have the errors of Usher's", async (t) => {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const options = await mountOptions(t)
  await app.register(usherPlugin, options)
  app.setErrorHandler(app.usher.errorHandler)
  await addEverywhere(app)
  const usher = await withUsers(app, options)
  for (const [name, prefix] of Object.entries(scopes)) {
    t.match(await callAll(usher, prefix), inShapeOfUsher, `${name} scope`)
  }
  const ofUsher = await usher.inject('GET', '/api/protected')
  t.same([ofUsher.headers['www-authenticate'], ofUsher.json()], ['Bearer', UNAUTHENTICATED])
})

t.test('12.1 guards leave the types of a route to its type provider', async (t) => {
  const app = Fastify({ pluginTimeout: 0 }).withTypeProvider<TypeBoxTypeProvider>()
  t.teardown(() => app.close())
  const options = await mountOptions(t)
  await app.register(usherPlugin, options)
  const { authenticate, identify, allow, requireRole } = app.usher
  const schema = { body: Type.Object({ title: Type.String() }), querystring: Type.Object({ times: Type.Integer() }) }
  const mayCreate = allow('users:create')
  // The compiler is what fails without the types.
  app.post('/a', { schema, onRequest: identify }, async ({ body, query }) => body.title.repeat(query.times))
  app.post('/b', { schema, onRequest: authenticate, preHandler: authenticate }, async ({ body }) => body.title.length)
  app.post('/c', { schema, onRequest: [mayCreate, async (request) => { request.log.debug('c') }] }, async ({ body }) => body.title.length)
  app.post('/d', { schema, onRequest: requireRole('admin') }, async ({ body }) => body.title.length)
  app.addHook('preHandler', identify)
  // @ts-expect-error a member that the schema does not have
  app.post('/e', { schema, onRequest: authenticate }, async ({ body }) => body.other)
  const response = await app.inject({ method: 'POST', url: '/a', query: { times: '2' }, payload: { title: 'ab' } })
  t.equal(response.payload, 'abab')
})

/** Starts what a node consists of, with the routes of a configuration file. */
async function startNode (t: Test, routes: NonNullable<UsherConfig['routes']>): Promise<TestUsher> {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  await app.register(httpDefaults, { origins: [], setHeaders: () => {} })
  const options = await mountOptions(t, '')
  await app.register(usherPlugin, options)
  await addRoutes(app, { name: 'usher.config.ts', path: '', cwd: '', options: { routes } }, NODE_DEADLINES)
  return withUsers(app, options)
}
