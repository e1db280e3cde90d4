import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance, type FastifyPluginAsync, type FastifyReply, type FastifyRequest } from 'fastify'
import { NotFound } from '../../schema/http/errors.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { readDesign } from './components.ts'
import { FONT, FONT_POLICY, readFont } from './font.ts'
import { readFileOfPage, readSignIn } from './pages.ts'
import type { ReferenceDocument } from './reference-page.ts'

const PATH = '/docs'
const GUIDE = `${PATH}/guide`
// The files of the page, with their media types.
const FILES = {
  'bar.css': 'text/css',
  'docs.css': 'text/css',
  'docs.js': 'text/javascript',
  'search.js': 'text/javascript',
  'sign-in.js': 'text/javascript',
  'favicon.svg': 'image/svg+xml',
}
const POLICY = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", FONT_POLICY, "img-src 'self'", "connect-src 'self'",
  "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
].join('; ')

interface Document {
  readonly type: string
  readonly etag: string
  readonly content: string | Buffer
}

/**
 * Serves the API reference: a page at GET /docs, OpenAPI at GET /docs/json, and the SDL at GET /docs/schema.graphql;
 * and the documents of Usher at GET /docs/guide (contract 8).
 */
const docs: FastifyPluginAsync = async (app) => {
  const { prefix } = app.usherOptions
  const reference = createOnce(() => describeDocuments(app))
  const guide = createOnce(() => createGuideDocuments(!app.usherOptions.without.includes('graphql')))

  app.get(PATH, { schema: { hide: true }, exposeHeadRoute: true }, onReadReference)
  app.get(`${PATH}/*`, { schema: { hide: true }, exposeHeadRoute: true }, onReadReference)

  async function onReadReference (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    // As it was sent, so each document has one path only.
    const [path] = request.url.slice(prefix.length).split('?') as [string]
    const documents = await (path === GUIDE || path.startsWith(`${GUIDE}/`) ? guide() : reference())
    const document = documents.get(path)
    if (!document) throw new NotFound()
    const { type, etag, content } = document
    const isCurrent = revalidate(request, reply, etag)
    // Also with 304, because browsers replace the headers that they have stored, such as the policy of the page.
    reply.header('content-security-policy', POLICY)
    return isCurrent ? sendNotModified(request, reply) : reply.type(type).send(content)
  }
}

/**
 * Returns a function that returns what a given one has returned: on the first request, because describing everything
 * would delay every start, and once, because any client could keep the node busy with it.
 */
function createOnce<Created> (create: () => Promise<Created>): () => Promise<Created> {
  let created: Promise<Created> | undefined
  return () => {
    if (!created) {
      created = create()
      created.catch(() => { created = undefined })
    }
    return created
  }
}

function toDocument (type: string, content: string | Buffer): Document {
  return { type, etag: `"${createHash('sha256').update(content).digest('base64url')}"`, content }
}

/** Returns the documents of Usher, by path. */
async function createGuideDocuments (hasGraphql: boolean): Promise<Map<string, Document>> {
  const { createGuide } = await import('./guide.ts')
  return new Map((await createGuide(hasGraphql)).map(({ path, type, content }) => [`${GUIDE}${path}`, toDocument(type, content)]))
}

/** Returns what the reference consists of, by path. Throws if the OpenAPI document cannot be generated. */
async function describeDocuments (app: FastifyInstance): Promise<Map<string, Document>> {
  const { usherOptions } = app
  const documents = new Map<string, Document>()
  const add = (path: string, type: string, content: string | Buffer) =>
    documents.set(`${PATH}${path}`, toDocument(type, content))

  const hasGraphql = !usherOptions.without.includes('graphql')
  const [{ renderReference }, { hasGuide }] = await Promise.all([import('./reference-page.ts'), import('./guide.ts')])
  const description = await describeApp(app)
  add('/json', 'application/json; charset=utf-8', JSON.stringify(description))
  // URLs are relative to the page, so that it works below a prefix and behind a proxy that changes the path.
  for (const [path, docs, base] of [['', './docs', '.'], ['/', '.', '..']] as const) {
    const places = { docs, base, signIn: await readSignIn(`${base}/api`), hasGraphql, hasGuide }
    add(path, 'text/html; charset=utf-8', `${renderReference(description, places)}`)
  }
  for (const [name, type] of Object.entries(FILES)) {
    add(`/static/${name}`, `${type}; charset=utf-8`, await readFileOfPage(name))
  }
  add('/static/design.css', 'text/css; charset=utf-8', readDesign(usherOptions.pages.color))
  add(`/static/${FONT}`, 'font/woff2', readFont())
  if (hasGraphql) {
    const [{ readSdl }, { extendSdl }] =
      await Promise.all([import('../../schema/graphql/sdl.ts'), import('../../schema/graphql/extend-graphql.ts')])
    add('/schema.graphql', 'text/plain; charset=utf-8', extendSdl(readSdl(usherOptions), usherOptions.hostGraphql))
  }
  return documents
}

/**
 * Returns the OpenAPI document of a mount. A separate app that never listens generates it, where @fastify/swagger
 * cannot conflict with a host's plugin of the same name or with the schemas that a host shares.
 */
async function describeApp (app: FastifyInstance): Promise<ReferenceDocument> {
  const reference = Fastify()
  await describeRoutes(reference, app)
  await reference.ready()
  const document = reference.swagger()
  await reference.close()
  return document as never
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

export default docs
