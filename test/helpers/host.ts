import cookie from '@fastify/cookie'
import cors from '@fastify/cors'
import helmet from '@fastify/helmet'
import jwt from '@fastify/jwt'
import multipart from '@fastify/multipart'
import sensible from '@fastify/sensible'
import fastifyStatic from '@fastify/static'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import websocket from '@fastify/websocket'
import Fastify, { type FastifyInstance } from 'fastify'
import mercurius from 'mercurius'
import type { Test } from 'tap'
import type { UsherOptions } from '../../app.ts'
import { slow } from './deadlines.ts'
import { testDatabaseUrl, uniqueSchema } from './database.ts'
import { temporaryFolder } from './temporary-folder.ts'

/**
 * Creates a Fastify instance with a non-default value for every option that could affect Usher. It is closed when the
 * test ends.
 */
export function openHost (t: Test): FastifyInstance {
  let requests = 0
  const app = Fastify({
    forceCloseConnections: true,
    pluginTimeout: 0,
    bodyLimit: 4096,
    genReqId: () => `host-${++requests}`,
    requestIdHeader: 'x-host-id',
    trustProxy: true,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    ajv: { customOptions: { removeAdditional: 'all', coerceTypes: 'array', allErrors: true } },
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength: 64,
      querystringParser: (text) => ({ ...Object.fromEntries(new URLSearchParams(text)), host: 'yes' }),
    },
  })
  t.teardown(() => app.close())
  return app
}

/**
 * Returns the options of one mount: the test database, and a PostgreSQL schema and a folder that no other mount uses.
 */
export async function mountOptions (t: Test, prefix = '/accounts'): Promise<UsherOptions & { prefix: string }> {
  return {
    prefix,
    databaseUrl: await testDatabaseUrl(),
    schema: uniqueSchema(`${t.name} ${prefix}`),
    uploadsDir: temporaryFolder(),
    poolSize: 2,
    deadlines: slow,
    admin: { email: 'admin@example.com', password: 'horse battery staple' },
  }
}

/** Registers every plugin that Usher also uses at the root of the host, with different options. */
export async function addPlugins (app: FastifyInstance): Promise<void> {
  await app.register(jwt, {
    secret: 'the secret of the host',
    sign: { iss: 'host' },
    verify: { allowedIss: 'host' },
    cookie: { cookieName: 'usher_session', signed: false },
  })
  await app.register(
    cookie, { secret: 'the secret of the host', hook: 'preParsing', parseOptions: { httpOnly: false, path: '/host' } }
  )
  await app.register(multipart, { attachFieldsToBody: true, limits: { fileSize: 100, fields: 3 } })
  await app.register(websocket, { options: { maxPayload: 1000, handleProtocols: (offered) => [...offered].at(-1)! } })
  await app.register(helmet, { contentSecurityPolicy: { directives: { defaultSrc: ["'self'"] } } })
  await app.register(cors, { origin: 'https://host.example' })
  await app.register(sensible, { sharedSchemaId: 'HttpError' })
  await app.register(fastifyStatic, { root: import.meta.dirname, prefix: '/files/' })
  await app.register(swagger, { openapi: { openapi: '3.0.3', info: { title: 'Host', version: '1' } } })
  await app.register(swaggerUi, { routePrefix: '/reference' })
  await app.register(mercurius, {
    path: '/graphql',
    graphiql: false,
    subscription: { fullWsTransport: true },
    context: () => ({ greeting: 'of the host' }),
    schema: 'type Query { hosts: [Host!]! } type Host { name: String! guests: [String!]! } type Mutation { ring: Boolean! } type Subscription { rang: String! }',
    resolvers: {
      Query: { hosts: () => [{ name: 'one' }, { name: 'two' }] },
      Mutation: {
        ring: async (_, __, { pubsub }) => {
          await pubsub.publish({ topic: 'RANG', payload: { rang: 'once' } })
          return true
        },
      },
      Subscription: { rang: { subscribe: async (_, __, { pubsub }) => pubsub.subscribe('RANG') } },
    },
    loaders: {
      Host: {
        guests: async (queries: { obj: { name: string } }[]) =>
          queries.map(({ obj }) => [`${obj.name}, one of ${queries.length}`]),
      },
    },
  })
}

/** Sets what a host can set for all of its routes: handlers, compilers, parsers and decorators. */
export function addSettings (app: FastifyInstance): void {
  for (const name of ['db', 'database', 'auth', 'events', 'storage', 'tokens']) {
    app.decorate(name, `${name} of the host`)
  }
  app.decorateRequest('options', '')
  app.decorateRequest('auth', '')
  app.decorateReply('events', '')
  app.setErrorHandler((error: Error & { statusCode?: number, code?: string }, _, reply) =>
    reply.code(error.statusCode ?? 500).send({ hostError: error.message, code: error.code }))
  app.setNotFoundHandler((request, reply) => reply.code(404).send({ hostNotFound: request.url }))
  app.setValidatorCompiler(() => (value) =>
    (value as { bad?: unknown } | null)?.bad ? { error: new Error('the host does not like it') } : { value })
  app.setSerializerCompiler(() => (data) => `${JSON.stringify(data)} as the host writes it`)
  app.setSchemaErrorFormatter(() => new Error('as the host says it'))
  app.addSchema({ $id: 'greeting', type: 'string' })
  app.setSchemaController({ compilersFactory: { buildValidator: () => () => () => () => true } as never })
  app.addContentTypeParser('*', { parseAs: 'string' }, (_, body, done) => done(null, { anything: body }))
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'string', bodyLimit: 200 }, (_, body, done) => {
    try {
      done(null, { parsed: JSON.parse(body as string) })
    } catch (error) {
      done(Object.assign(error as Error, { statusCode: 422 }))
    }
  })
}

/** Adds hooks of every kind. They append their name to `seen` and add headers to the response. */
export function addHooks (app: FastifyInstance, seen: string[] = []): void {
  app.addHook(
    'onRequest',
    async ({ method, url }, reply) => { seen.push(`onRequest ${method} ${url}`); reply.header('x-host', 'yes') }
  )
  app.addHook('preParsing', async (_, __, payload) => { seen.push('preParsing'); return payload })
  app.addHook('preValidation', async () => { seen.push('preValidation') })
  app.addHook('preHandler', async () => { seen.push('preHandler') })
  app.addHook('preSerialization', async (_, __, payload) => { seen.push('preSerialization'); return payload })
  app.addHook(
    'onSend', async (_, reply, payload) => { seen.push('onSend'); reply.header('x-host-sent', 'yes'); return payload }
  )
  app.addHook('onResponse', async () => { seen.push('onResponse') })
  app.addHook('onError', async () => { seen.push('onError') })
}

/** Adds the routes of the host. */
export function addRoutes (app: FastifyInstance): void {
  app.get('/mine', { schema: { response: { 200: { type: 'object', properties: { a: { type: 'string' } } } } } },
    async (request) => ({ a: 1, b: 2, query: request.query, actor: request.actor, cookies: request.cookies }))
  app.post(
    '/mine',
    { schema: { body: { type: 'object', properties: { bad: { type: 'boolean' } }, additionalProperties: false } } },
    async ({ body }) => ({ body })
  )
  app.post('/upload', async ({ body }) => {
    const { file, text } = body as { file: { filename: string, toBuffer (): Promise<Buffer> }, text: { value: string } }
    return { name: file.filename, bytes: String(await file.toBuffer()), text: text.value }
  })
  app.get('/fails', async () => { throw Object.assign(new Error('broken'), { statusCode: 418, code: 'TEAPOT' }) })
  app.get('/token', async (_, reply) => ({ token: await reply.jwtSign({ sub: 'me', iat: 1 }) }))
  app.get('/locked', { onRequest: async (request) => { await request.jwtVerify() } }, async ({ user }) => ({ user }))
  app.get('/cookie', async (_, reply) => reply.setCookie('host', 'value', { signed: true }).send({ set: true }))
  app.get('/parts/:id', async ({ params }) => params)
  app.get('/ws', { websocket: true }, (socket) => { socket.on('message', (data) => socket.send(`host heard ${data}`)) })
}
