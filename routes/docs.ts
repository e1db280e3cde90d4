import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { OutgoingHttpHeaders } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyPluginAsync, type FastifyReply, type FastifyRequest } from 'fastify'
import { NotFound } from '../schema/errors.ts'
import { describeApi, finishDocument } from '../schema/openapi.ts'

const PATH = '/docs'
// Accepts one spelling of each file's name, so that the files bound the size of the cache.
const FILE = /^\/docs(\/|\/(static\/)?[a-z\d-]+(\.[a-z\d-]+)*)?$/

interface Document { readonly headers: OutgoingHttpHeaders, readonly etag: string, readonly content: Buffer }

/** The API reference: GET /docs for people, GET /docs/json for programs, and GraphQL's schema beside them (contract 8). */
const docs: FastifyPluginAsync = async (app) => {
  const { prefix } = app.usherOptions
  const documents = new Map<string, Promise<Document>>()
  let reference: Promise<FastifyInstance> | undefined

  app.get(PATH, { schema: { hide: true } }, onReadReference)
  app.get(`${PATH}/*`, { schema: { hide: true } }, onReadReference)

  async function onReadReference (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const [path] = request.url.slice(prefix.length).split('?') as [string]
    if (!FILE.test(path)) throw new NotFound()
    let document = documents.get(path)
    if (!document) {
      documents.set(path, document = readDocument(path))
      document.catch(() => documents.delete(path))
    }
    const { headers, etag, content } = await document
    reply.headers(headers).header('etag', etag)
    const known = request.headers['if-none-match']
    return known === '*' || known?.includes(etag) ? reply.code(304).send() : reply.send(content)
  }

  // The result is cached: rendering a document for every request would let any client keep the node busy.
  async function readDocument (path: string): Promise<Document> {
    // Made for the first who asks, for loading it would delay every start.
    reference ??= createReference(app)
    const { statusCode, headers, rawPayload: content } = await (await reference).inject(path)
    if (statusCode !== 200) throw new NotFound()
    const { connection, date, etag, 'last-modified': modified, 'accept-ranges': ranges, ...rest } = headers
    return { headers: rest, etag: `"${createHash('sha256').update(content).digest('base64url')}"`, content }
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
