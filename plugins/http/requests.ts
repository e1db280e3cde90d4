import { isUtf8 } from 'node:buffer'
import { parse as parseQuery } from 'node:querystring'
import type {} from '@fastify/swagger'
import fastJsonStringify from 'fast-json-stringify'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { FastifySerializerCompiler } from 'fastify/types/schema.js'
import fp from 'fastify-plugin'
import { IDEMPOTENT } from '../../schema/http/idempotency.ts'
import { InvalidInput, MethodNotAllowed, NotFound, UnsupportedContentCoding } from '../../schema/http/errors.ts'
import { forSerializer } from '../../schema/fields/extend.ts'
import { createOrganizationExtension } from '../../schema/organizations/extend-organization.ts'
import { createExtension, isExtended } from '../../schema/users/extend-user.ts'
import { validatorCompiler } from '../../schema/http/validator.ts'
import bodyDeadline, { readsBody } from './raw/body-deadline.ts'
import { isEncoded } from './content-coding.ts'
import { rejectPreflight } from './preflight.ts'

/**
 * Sets how requests to /api are parsed and validated and how responses are serialized, whatever the host has set for
 * its own routes: Usher's validator and serializer, a JSON parser that accepts an absent body, which then counts as
 * `{}` (contract 1.9), and a parser of query strings in which a name may occur more than once. Adds the host's fields
 * of users and organisations and its roles to all schemas.
 */
export default fp(async function requests (app) {
  const { usherOptions: options } = app
  const ofOrganizations = options.organizations?.fields ?? []
  const hasFields = options.userFields.length > 0 || ofOrganizations.length > 0
  const [extendUsers, extendOrganizations] = [createExtension(options), createOrganizationExtension(ofOrganizations)]
  const compileWith = (prepare: (schema: object) => object): FastifySerializerCompiler<unknown> => ({ schema }) => {
    // Compiled for the first response, like validators for the first request.
    let serialize: ((data: unknown) => string) | undefined
    return (data) =>
      (serialize ??= fastJsonStringify(prepare(hasFields ? forSerializer(schema as object) : schema as object)))(data)
  }
  const serializerCompiler = compileWith((schema) => schema)
  const repeatingCompiler = compileWith(withoutRequired)
  app.addHook('onRoute', (route) => {
    // Fastify replaces the compilers of a scope by the host's if the host adds a schema later, but not those of a
    // route.
    route.validatorCompiler = readsBody(route) ? acceptAll : validatorCompiler
    route.serializerCompiler = route.schema && IDEMPOTENT in route.schema ? repeatingCompiler : serializerCompiler
    // Here rather than in the routes, so that no route can forget a field.
    if (hasFields || isExtended(options)) route.schema = extendOrganizations(extendUsers(route.schema))
  })
  app.removeAllContentTypeParsers()
  addJsonParser(app)
  await app.register(bodyDeadline)
  app.addHook('preValidation', app.usherAccess.reconfirm)
  app.addHook('preValidation', (request, _, done) => {
    if (request.body === undefined) request.body = {}
    const query = request.url.indexOf('?')
    if (query !== -1) request.query = parseQuery(request.url.slice(query + 1))
    done()
  })
}, { name: 'usher-requests', dependencies: ['usher-options', 'usher-access'] })

// A response may repeat one of an earlier release (contract 10.4), whose record has not all members that this release
// requires. It is sent without them, as it was then. The members keep their order: fast-json-stringify writes those
// that are required first.
function withoutRequired<Node> (node: Node): Node {
  if (typeof node !== 'object' || node === null) return node
  if (Array.isArray(node)) return node.map(withoutRequired) as Node
  const { required, properties, ...others } = node as { required?: unknown, properties?: Record<string, unknown> }
  const names = Array.isArray(required) ? required : []
  const rankOf = ([name]: [string, unknown]) => names.includes(name) ? 0 : 1
  const members = Object.entries(properties ?? {}).sort((one, other) => rankOf(one) - rankOf(other))
  return Object.fromEntries(Object.entries({ ...others, ...properties && { properties: Object.fromEntries(members) } })
    .map(([key, value]) => [key, withoutRequired(value)])) as Node
}

// The schema of such a body is for the reference. The route validates the body once it has read it.
const acceptAll = () => () => true

/**
 * Sets `Cache-Control: no-store` on all responses of a scope, errors included, because they are about an account
 * (contract 4). Only pages with an entity tag replace it (contract 10.1).
 */
export function forbidStoring (app: FastifyInstance): void {
  app.addHook('onRequest', (_, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })
}

/** Adds a parser of JSON that treats an empty body as an absent one. */
export function addJsonParser (app: FastifyInstance, type = 'application/json'): void {
  const parse = app.getDefaultJsonParser('remove', 'remove')
  app.addContentTypeParser(type, { parseAs: 'buffer', bodyLimit: app.usherOptions.bodyLimit }, (
    request, body, done
  ) => {
    if (body.length === 0) return done(null, undefined)
    const reject = () => {
      const invalid = new InvalidInput('body is not valid JSON')
      const error = isEncoded(request.headers) ? new UnsupportedContentCoding() : invalid
      Promise.resolve(app.usherAccess.rejectionOf(error, app.usherAccess.actors.in(request), request.socket)).then(
        done, done
      )
    }
    // Decoding would replace invalid bytes with U+FFFD, and other text than the client sent would be stored.
    if (!isUtf8(body as Buffer)) return reject()
    parse(request, body.toString(), (error, value) => error ? reject() : done(null, value))
  })
}

/**
 * Adds routes for the requests that no route registered before matches: 405 with `Allow` for a known path with another
 * method, 404 for an unknown path (contract 1.4).
 *
 * @param methodsOf the result of `collectMethods`
 */
export function addFallbacks (app: FastifyInstance, methodsOf: ReadonlyMap<string, ReadonlySet<string>>): void {
  for (const [url, methods] of [...methodsOf]) {
    const allow = [...methods].sort().join(', ')
    reject(url, app.supportedMethods.filter((method) => !methods.has(method)), (request, reply) => {
      rejectPreflight(request)
      reply.header('allow', allow)
      throw new MethodNotAllowed(request.method)
    })
  }
  // The wildcard also matches what the router would reject by itself, such as a very long id.
  const unknown = (request: FastifyRequest) => {
    rejectPreflight(request)
    throw new NotFound()
  }
  for (const url of ['/', '/*']) reject(url, app.supportedMethods, unknown)
  // This handles the methods that are not in `supportedMethods`.
  app.setNotFoundHandler(unknown)

  // An `onRequest` hook rejects a request before its body is read.
  function reject (url: string, method: string[], fail: (request: FastifyRequest, reply: FastifyReply) => never): void {
    const rejection = async (request: FastifyRequest, reply: FastifyReply) => fail(request, reply)
    app.route({ url, method, schema: { hide: true }, onRequest: rejection, handler: rejection })
  }
}

/**
 * Returns the methods of each URL of a scope, for `addFallbacks`. The map fills as routes are registered. URLs are
 * relative to the scope's prefix.
 */
export function collectMethods (app: FastifyInstance): Map<string, Set<string>> {
  const methodsOf = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const path = url.slice(app.prefix.length)
    const methods = methodsOf.get(path) ?? new Set()
    for (const one of [method].flat()) methods.add(one)
    methodsOf.set(path, methods)
  })
  return methodsOf
}
