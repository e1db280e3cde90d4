import { readFileSync } from 'node:fs'
import type { FastifyError, FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import mercurius, { type IResolvers, type MercuriusOptions } from 'mercurius'
import bodyDeadline, { isLate } from '../../plugins/body-deadline.ts'
import { addJsonParser } from '../../plugins/http.ts'
import { limits } from '../../schema/graphql-limits.ts'
import { createContext, type GraphQLContext } from './context.ts'
import { formatExecution } from './format.ts'
import { sendGraphiql, wantsGraphiql } from './graphiql.ts'
import { addLimits } from './hooks.ts'
import { createLimits } from './limits.ts'
import { readOperation, type Operation } from './operation.ts'
import { resolvers } from './resolvers.ts'
import { addSockets } from './live/ws/sockets.ts'
import { addEventStreams, wantsEvents } from './live/sse/sse.ts'
import { createSubscriptions } from './live/subscriptions.ts'

const PATH = '/graphql'
const DOCUMENTS_KEPT = 256
const sdl = readFileSync(new URL('../../schema/schema.graphql', import.meta.url), 'utf8')

/**
 * /graphql: queries and mutations by POST; these and subscriptions by a socket, or as server-sent events; GraphiQL for a
 * browser (contract 7).
 */
const graphql: FastifyPluginAsync = async (app) => {
  // What the body must be is said in GraphQL's shape, by `readOperation`.
  app.setValidatorCompiler(() => () => true)
  app.removeAllContentTypeParsers()
  addJsonParser(app)
  await app.register(bodyDeadline)
  app.addHook('onRequest', (request, _, done) => {
    const { authorization } = request.headers
    if (authorization === undefined) return done()
    app.usherAuth.identify(authorization, request.socket).then((actor) => {
      request.actor = actor
      done()
    }, done)
  })
  app.addHook('preValidation', app.usherAuth.reconfirm)
  app.addHook('onSend', ({ raw }, reply, __, done) => {
    // Of a body that is too large: Fastify would close at once, and the answer be lost, see `plugins/lingering-close.ts`.
    if (!isLate(raw)) reply.removeHeader('connection')
    done()
  })
  app.decorate('usherGraphqlLimits', createLimits(app))
  const subscriptions = createSubscriptions(app)
  addSockets(app, PATH, subscriptions)
  await app.register(mercurius, createOptions(app, addEventStreams(app, subscriptions)))
  addLimits(app)
}

function createOptions (app: FastifyInstance, answerByEvents: ReturnType<typeof addEventStreams>): MercuriusOptions {
  return {
    path: PATH,
    schema: sdl,
    resolvers: resolvers as unknown as IResolvers,
    jit: 1,
    cache: DOCUMENTS_KEPT,
    graphql: { parseOptions: { maxTokens: limits.tokens }, validateOptions: { maxErrors: limits.errors } },
    // Every answer to a POST has status 200 (contract 7.1).
    errorFormatter: (execution, context) =>
      ({ statusCode: 200, response: formatExecution(execution, (context as { reply?: { log: typeof app.log } }).reply?.log ?? app.log) as never }),
    // An error handler may need it for a body that was refused.
    context: (request): GraphQLContext => createContext(app, request, (request.body as Operation | null | undefined)?.operationName),
    // Without it, mercurius would not assign resolvers of the form `{ subscribe, resolve }`.
    subscription: true,
    additionalRouteOptions: {
      bodyLimit: app.usherOptions.bodyLimit,
      schema: { hide: true },
      // `done` is called for what mercurius is to answer, and for errors. Awaiting a reply instead would run the route's
      // handler, too, if the client disconnects before the reply is sent.
      preValidation (request: FastifyRequest, reply: FastifyReply, done: (error?: FastifyError) => void) {
        if (wantsEvents(request)) {
          answerByEvents(request, reply).catch(done)
        } else if (request.method === 'POST') {
          request.body = readOperation(app.graphql.schema, request.body)
          done()
        } else if (wantsGraphiql(request)) {
          sendGraphiql(reply).catch(done)
        } else {
          reply.code(405).header('allow', 'POST').send({ error: 'GET is not allowed here', code: 'METHOD_NOT_ALLOWED' })
        }
      },
    },
  }
}

export default graphql
