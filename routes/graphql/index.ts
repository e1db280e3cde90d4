import type { FastifyError, FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { GraphQLError, type GraphQLSchema } from 'graphql'
import mercurius, { type IResolvers, type MercuriusOptions } from 'mercurius'
import bodyDeadline from '../../plugins/http/raw/body-deadline.ts'
import { keepConnection, translate } from '../../plugins/http/errors.ts'
import { addJsonParser } from '../../plugins/http/requests.ts'
import { sendIsolated } from '../../plugins/http/response-isolation.ts'
import { extendUsherSchema } from '../../schema/graphql/extend-graphql.ts'
import { limits } from '../../schema/graphql/limits.ts'
import { readSdl } from '../../schema/graphql/sdl.ts'
import { createGetHandler, statusByGet } from './by-get.ts'
import { createContext, type GraphQLContext } from './context.ts'
import { createErrorCount } from './execution/count-errors.ts'
import { formatExecution, type FailedExecution } from './execution/format.ts'
import { wantsPage } from '../pages/pages.ts'
import { sendGraphiql } from './graphiql/graphiql.ts'
import { addLimits } from './hooks.ts'
import { addHostResolvers } from './host/add-resolvers.ts'
import { createLimits } from './limits/limits.ts'
import { readOperation, type Operation } from './execution/operation.ts'
import { createResolvers } from './resolvers/resolvers.ts'
import { addSockets } from './live/ws/sockets.ts'
import { addEventStreams, wantsEvents } from './live/sse/sse.ts'
import { createSubscriptions } from './live/subscriptions.ts'

const PATH = '/graphql'
const DOCUMENTS_KEPT = 256

declare module 'fastify' {
  interface FastifyInstance {
    usherGraphql: {
      readonly limits: ReturnType<typeof createLimits>
      /** Counts the errors that clients receive, by their code. */
      readonly countErrors: ReturnType<typeof createErrorCount>
    }
  }
}

/**
 * Adds the endpoint /graphql (contract 7): queries and mutations by POST, queries by GET, all operations over a
 * WebSocket or server-sent events, and GraphiQL for browsers.
 */
const graphql: FastifyPluginAsync = async (app) => {
  app.removeAllContentTypeParsers()
  addJsonParser(app)
  await app.register(bodyDeadline)
  app.addHook('onRequest', (request, _, done) => {
    const { authorization } = request.headers
    if (authorization === undefined) return done()
    app.usherAccess.identify(authorization, request.socket).then((actor) => {
      app.usherAccess.actors.set(request, actor)
      done()
    }, done)
  })
  app.addHook('preValidation', app.usherAccess.reconfirm)
  app.decorate('usherGraphql', { limits: createLimits(app), countErrors: createErrorCount(app) })
  const subscriptions = createSubscriptions(app)
  addSockets(app, PATH, subscriptions)
  await app.register(mercurius, createOptions(app, addEventStreams(app, subscriptions)))
  addLimits(app)
}

// Every mount has a schema of its own, because a schema contains its resolvers.
function createSchema ({ usherOptions }: FastifyInstance): GraphQLSchema {
  const { hostGraphql } = usherOptions
  const extended = extendUsherSchema(readSdl(usherOptions), hostGraphql)
  if (hostGraphql) addHostResolvers(extended, hostGraphql)
  return extended.schema
}

function createOptions (app: FastifyInstance, respondWithEvents: ReturnType<typeof addEventStreams>): MercuriusOptions {
  const respondByGet = createGetHandler(app)
  return {
    path: PATH,
    errorHandler,
    schema: createSchema(app),
    resolvers: createResolvers(app) as unknown as IResolvers,
    jit: 1,
    cache: DOCUMENTS_KEPT,
    graphql: { parseOptions: { maxTokens: limits.tokens }, validateOptions: { maxErrors: limits.errors } },
    errorFormatter (execution, context) {
      const { statusCode, response } = formatFailure(execution, (context as { reply?: FastifyReply }).reply)
      return { statusCode, response: response as never }
    },
    // mercurius also creates a context for the error handler, whose request may have a rejected body or none.
    context: (request): GraphQLContext =>
      createContext(app, request, (request.body as Operation | null | undefined) ?? undefined),
    // If this is off, mercurius does not assign resolvers of the form `{ subscribe, resolve }` correctly.
    subscription: true,
    additionalRouteOptions: {
      bodyLimit: app.usherOptions.bodyLimit,
      // It replaces mercurius's schemas: `readOperation` validates the body, because its errors need the GraphQL
      // format.
      schema: { hide: true },
      // Calls `done` only for errors and for requests that mercurius handles. If this were an async function that
      // awaits the reply, the route's handler would also run when the client disconnects before the reply is sent.
      preValidation (request: FastifyRequest, reply: FastifyReply, done: (error?: FastifyError) => void) {
        if (wantsEvents(request)) {
          respondWithEvents(request, reply).catch(done)
        } else if (request.method === 'POST') {
          request.body = readOperation(app.graphql.schema, request.body, request.headers)
          done()
        } else if (wantsPage(request)) {
          sendGraphiql(request, reply).catch(done)
        } else {
          respondByGet(request, reply).catch(done)
        }
      },
    },
  }

  // That of mercurius would send its response through the host's `preSerialization` hooks.
  async function errorHandler (error: FastifyError, _: FastifyRequest, reply: FastifyReply): Promise<void> {
    keepConnection(translate(error), reply)
    const wrapped = error instanceof GraphQLError ? error : new GraphQLError(error.message, { originalError: error })
    const { statusCode, response } = formatFailure({ errors: [wrapped] }, reply)
    await sendIsolated.call(reply.code(statusCode), response)
  }

  function formatFailure (execution: FailedExecution, reply?: FastifyReply) {
    const response = formatExecution(execution, (reply ?? app).log)
    app.usherGraphql.countErrors(response.errors!)
    // Every response to a POST has status 200 (contract 7.1).
    const isPost = reply === undefined || reply.request.method === 'POST'
    return { statusCode: isPost ? 200 : statusByGet(execution, response, reply.request, reply), response }
  }
}

export default graphql
