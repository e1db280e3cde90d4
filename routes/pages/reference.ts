import { createHash } from 'node:crypto'
import type { OutgoingHttpHeaders } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyPluginAsync, type FastifyReply, type FastifyRequest } from 'fastify'
import { NotFound } from '../../schema/http/errors.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { fillTemplate, readFileOfPage, readSignIn } from './pages.ts'

const PATH = '/docs'
// The files of the page besides those of Swagger UI, with their media types.
const FILES = {
  'docs.css': 'text/css',
  'docs.js': 'text/javascript',
  'sign-in.css': 'text/css',
  'sign-in.js': 'text/javascript',
  'favicon.svg': 'image/svg+xml',
}
// Matches exactly one spelling of each path, so that the cache has at most one entry for each file.
const FILE = /^\/docs(\/|\/(static\/)?[a-z\d-]+(\.[a-z\d-]+)*)?$/

interface Document {
  readonly type: string
  readonly headers: OutgoingHttpHeaders
  readonly etag: string
  readonly content: Buffer
}

/**
 * Serves the API reference: a page at GET /docs, OpenAPI at GET /docs/json, and the SDL at GET /docs/schema.graphql
 * (contract 8).
 */
const docs: FastifyPluginAsync = async (app) => {
  const { prefix } = app.usherOptions
  const documents = new Map<string, Promise<Document>>()
  let reference: Promise<FastifyInstance> | undefined

  app.get(PATH, { schema: { hide: true }, exposeHeadRoute: true }, onReadReference)
  app.get(`${PATH}/*`, { schema: { hide: true }, exposeHeadRoute: true }, onReadReference)

  async function onReadReference (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const [path] = request.url.slice(prefix.length).split('?') as [string]
    if (!FILE.test(path)) throw new NotFound()
    let document = documents.get(path)
    if (!document) {
      documents.set(path, document = readDocument(path))
      document.catch(() => documents.delete(path))
    }
    const { type, headers, etag, content } = await document
    const isCurrent = revalidate(request, reply, etag)
    // Also with 304, because browsers replace the headers that they have stored, such as the policy of the page.
    reply.headers(headers)
    return isCurrent ? sendNotModified(request, reply) : reply.type(type).send(content)
  }

  // The caller caches the result. Otherwise any client could keep the node busy with rendering documents.
  async function readDocument (path: string): Promise<Document> {
    // Created on the first request, because loading the reference at start would delay every start.
    reference ??= createReference(app)
    const { statusCode, headers, rawPayload: content } = await (await reference).inject(path)
    if (statusCode !== 200) throw new NotFound()
    const {
      'content-type': type, 'content-length': length, connection, date, etag, 'cache-control': caching,
      'last-modified': modified, 'accept-ranges': ranges, ...rest
    } = headers
    return {
      type: `${type}`, headers: rest, etag: `"${createHash('sha256').update(content).digest('base64url')}"`, content,
    }
  }
}

/**
 * Creates a separate app that serves the reference through `inject` and never listens. There, @fastify/swagger and
 * @fastify/swagger-ui cannot conflict with a host's plugins of the same names or with the schemas that a host shares.
 */
async function createReference (app: FastifyInstance): Promise<FastifyInstance> {
  const { usherOptions } = app
  const { default: swaggerUi } = await import('@fastify/swagger-ui')
  const reference = Fastify()
  await describeRoutes(reference, app)
  await reference.register(swaggerUi, {
    routePrefix: PATH,
    // The page of @fastify/swagger-ui cannot be used on phones and has no place for a form.
    uiHooks: { onRequest: sendPage },
    staticCSP: createPolicy(usherOptions.publicUrl),
  })
  for (const [name, type] of Object.entries(FILES)) {
    const content = await readFileOfPage(name)
    reference.get(`${PATH}/static/${name}`, { schema: { hide: true } }, (_, reply) =>
      reply.type(`${type}; charset=utf-8`).send(content))
  }
  if (!usherOptions.without.includes('graphql')) {
    const [{ readSdl }, { extendSdl }] =
      await Promise.all([import('../../schema/graphql/sdl.ts'), import('../../schema/graphql/extend-graphql.ts')])
    const sdl = extendSdl(readSdl(usherOptions), usherOptions.hostGraphql)
    reference.get(`${PATH}/schema.graphql`, { schema: { hide: true } }, (_, reply) =>
      reply.type('text/plain; charset=utf-8').send(sdl))
  }
  await reference.ready()
  // This throws if the document cannot be generated. The request then gets 500.
  reference.swagger()
  return reference
}

/**
 * Adds the routes of a mount to an app that only describes them: its `swagger()` returns the OpenAPI document of the
 * mount, once the app is ready.
 */
export async function describeRoutes (
  reference: FastifyInstance,
  { usherOptions, usherReference: { routes, tags } }: Pick<FastifyInstance, 'usherOptions' | 'usherReference'>
): Promise<void> {
  const [{ default: swagger }, { describeApi, finishDocument }] =
    await Promise.all([import('@fastify/swagger'), import('../../schema/http/openapi.ts')])
  // The routes are only described and never called, so their validators, serializers and handlers can be any function.
  reference.setValidatorCompiler(() => Boolean)
  reference.setSerializerCompiler(() => JSON.stringify)

  await reference.register(swagger, {
    openapi: describeApi(usherOptions, tags),
    transformObject: (document) => finishDocument((document as { openapiObject: object }).openapiObject as never),
    stripBasePath: false,
  })
  for (const { method, url, schema } of routes) reference.route({ method, url, schema: schema!, handler: Boolean })
}

// URLs are relative to the page, so that it works below a prefix and behind a proxy that changes the path.
async function sendPage ({ url }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
  if (url !== PATH && url !== `${PATH}/`) return
  const isFolder = url.endsWith('/')
  const values = { docs: isFolder ? '.' : './docs', signIn: await readSignIn(isFolder ? '../api' : './api') }
  return reply.type('text/html; charset=utf-8').send(fillTemplate(await readFileOfPage('docs.html'), values))
}

// "Try it out" calls the service at the origin of the page or at its public address.
function createPolicy (publicUrl: string | undefined): string {
  const connect = publicUrl ? `'self' ${new URL(publicUrl).origin}` : "'self'"
  return [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", `connect-src ${connect}`,
    "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ].join('; ')
}

export default docs
