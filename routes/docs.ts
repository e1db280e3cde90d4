import { readFile } from 'node:fs/promises'
import Fastify, { type FastifyInstance, type FastifyPluginAsync, type FastifyReply, type FastifyRequest } from 'fastify'
import { NotFound } from '../schema/errors.ts'
import { describeApi, finishDocument } from '../schema/openapi.ts'

const PATH = '/docs'

/** The API reference: GET /docs for people, GET /docs/json for programs, and GraphQL's schema beside them (contract 8). */
const docs: FastifyPluginAsync = async (app) => {
  const { prefix } = app.usherOptions
  let reference: Promise<FastifyInstance> | undefined

  app.get(PATH, { schema: { hide: true } }, onReadReference)
  app.get(`${PATH}/*`, { schema: { hide: true } }, onReadReference)

  async function onReadReference (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    // Made for the first who asks, for loading it would delay every start.
    reference ??= createReference(app)
    const { statusCode, headers, rawPayload } = await (await reference).inject({
      url: request.url.slice(prefix.length),
      headers: { 'if-none-match': request.headers['if-none-match'] ?? '' },
    })
    if (statusCode === 304) return reply.code(304).send()
    if (statusCode !== 200) throw new NotFound()
    const { connection, date, ...rest } = headers
    return reply.headers(rest).send(rawPayload)
  }
}

/**
 * The reference as an app of its own, which never listens: its plugins meet neither a host's, of the same names,
 * nor the schemas that a host shares.
 */
async function createReference ({ usherOptions, usherRoutes }: FastifyInstance): Promise<FastifyInstance> {
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([import('@fastify/swagger'), import('@fastify/swagger-ui')])
  const sdl = await readFile(new URL('../schema/schema.graphql', import.meta.url))
  const reference = Fastify()
  // The routes are described, and never called: any function will do.
  reference.setValidatorCompiler(() => Boolean)
  reference.setSerializerCompiler(() => JSON.stringify)

  await reference.register(swagger, {
    openapi: describeApi(usherOptions),
    transformObject: (document) => finishDocument((document as { openapiObject: object }).openapiObject as never),
    stripBasePath: false,
  })
  await reference.register(swaggerUi, {
    routePrefix: PATH,
    // Relative to the page, so that it serves under a prefix, and behind a proxy that changes the path.
    indexPrefix: '.',
    theme: { title: 'Usher API' },
    uiConfig: { layout: 'BaseLayout', displayRequestDuration: true },
    staticCSP: createPolicy(usherOptions.publicUrl),
  })
  reference.get(`${PATH}/schema.graphql`, { schema: { hide: true } }, (_, reply) => reply.type('text/plain; charset=utf-8').send(sdl))
  for (const route of usherRoutes) reference.route({ ...route, handler: Boolean })

  await reference.ready()
  // What is wrong with it comes out here, as a failure of the server.
  reference.swagger()
  return reference
}

// "Try it out" calls the service where the page comes from, or at its public address.
function createPolicy (publicUrl: string | undefined): string {
  const connect = publicUrl ? `'self' ${new URL(publicUrl).origin}` : "'self'"
  return [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", `connect-src ${connect}`,
    "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ].join('; ')
}

export default docs
