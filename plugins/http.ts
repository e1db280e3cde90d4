import type {} from '@fastify/swagger'
import fastJsonStringify from 'fast-json-stringify'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { InvalidInput, MethodNotAllowed, NotFound } from '../schema/errors.ts'
import { validatorCompiler } from '../schema/validator.ts'

/**
 * How requests are read and answers written under /api, whatever a host has set for its own routes: our
 * validator and serializer, and a JSON parser for which an absent body is `{}` (contract 1.9).
 */
export default fp(async function http (app) {
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(({ schema }) => fastJsonStringify(schema as object))
  app.removeContentTypeParser(['application/json', 'text/plain'])
  addJsonParser(app)
  app.addHook('preValidation', async (request) => { request.body ??= {} })
}, { name: 'usher-http' })

function addJsonParser (app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('remove', 'remove')
  app.addContentTypeParser('application/json', { parseAs: 'string', bodyLimit: app.usherOptions.bodyLimit }, (request, body, done) => {
    if (body === '') return done(null, undefined)
    parse(request, body as string, (error, value) => error ? done(new InvalidInput('body is not valid JSON')) : done(null, value))
  })
}

/**
 * Answers whatever the routes registered before it do not: a known path with another method 405 and `Allow`,
 * an unknown path 404 (contract 1.4).
 */
export function addFallbacks (app: FastifyInstance, methodsOf: ReadonlyMap<string, ReadonlySet<string>>): void {
  for (const [url, methods] of methodsOf) {
    const allow = [...methods].sort().join(', ')
    app.route({
      url,
      method: app.supportedMethods.filter((method) => !methods.has(method)),
      schema: { hide: true },
      // Before the body is read.
      onRequest: async ({ method }, reply) => {
        reply.header('allow', allow)
        throw new MethodNotAllowed(method)
      },
      handler: () => {},
    })
  }
  app.setNotFoundHandler(() => { throw new NotFound() })
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
