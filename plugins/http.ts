import { isUtf8 } from 'node:buffer'
import { parse as parseQuery } from 'node:querystring'
import type {} from '@fastify/swagger'
import fastJsonStringify from 'fast-json-stringify'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { InvalidInput, MethodNotAllowed, NotFound } from '../schema/errors.ts'
import { validatorCompiler } from '../schema/validator.ts'
import bodyDeadline from './body-deadline.ts'

/**
 * How requests are read and answers written under /api, whatever a host has set for its own routes: our
 * validator and serializer, a JSON parser for which an absent body is `{}` (contract 1.9), and query strings in
 * which a name may come twice.
 */
export default fp(async function http (app) {
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(({ schema }) => fastJsonStringify(schema as object))
  app.removeAllContentTypeParsers()
  addJsonParser(app)
  await app.register(bodyDeadline)
  app.addHook('preValidation', app.usherAuth.reconfirm)
  app.addHook('preValidation', (request, _, done) => {
    if (request.body === undefined) request.body = {}
    const query = request.url.indexOf('?')
    if (query !== -1) request.query = parseQuery(request.url.slice(query + 1))
    done()
  })
}, { name: 'usher-http', dependencies: ['usher-auth'] })

/** Forbids every cache to store what the routes of a scope answer, errors included: it is about an account (contract 4). */
export function forbidStoring (app: FastifyInstance): void {
  app.addHook('onRequest', (_, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })
}

/** Parses `application/json`; an empty body is an absent one. */
export function addJsonParser (app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('remove', 'remove')
  app.addContentTypeParser('application/json', { parseAs: 'buffer', bodyLimit: app.usherOptions.bodyLimit }, (request, body, done) => {
    if (body.length === 0) return done(null, undefined)
    const refuse = () => done(new InvalidInput('body is not valid JSON'))
    // Decoding would store U+FFFD where somebody sent something else.
    if (!isUtf8(body as Buffer)) return refuse()
    parse(request, body.toString(), (error, value) => error ? refuse() : done(null, value))
  })
}

/**
 * Answers whatever the routes registered before it do not: a known path with another method 405 and `Allow`,
 * an unknown path 404 (contract 1.4).
 */
export function addFallbacks (app: FastifyInstance, methodsOf: ReadonlyMap<string, ReadonlySet<string>>): void {
  for (const [url, methods] of [...methodsOf]) {
    const allow = [...methods].sort().join(', ')
    refuse(url, app.supportedMethods.filter((method) => !methods.has(method)), ({ method }, reply) => {
      reply.header('allow', allow)
      throw new MethodNotAllowed(method)
    })
  }
  // The wildcard also takes what the router itself would refuse, such as a very long id.
  const unknown = () => { throw new NotFound() }
  for (const url of ['/', '/*']) refuse(url, app.supportedMethods, unknown)
  // Also for a method that is none of those.
  app.setNotFoundHandler(unknown)

  // Before the body is read.
  function refuse (url: string, method: string[], answer: (request: FastifyRequest, reply: FastifyReply) => never): void {
    const refusal = async (request: FastifyRequest, reply: FastifyReply) => answer(request, reply)
    app.route({ url, method, schema: { hide: true }, onRequest: refusal, handler: refusal })
  }
}

/** Collects the routes of a scope, for `addFallbacks`: the methods of each URL, relative to the scope's prefix. */
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
