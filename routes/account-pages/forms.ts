import { isUtf8 } from 'node:buffer'
import { parse } from 'node:querystring'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { keepConnection, reportError, translate } from '../../plugins/http/errors.ts'
import { isResponding } from '../../plugins/http/response-isolation.ts'
import { InvalidInput, OriginNotAllowed } from '../../schema/http/errors.ts'
import { createAllowedOrigins } from '../allowed-origins.ts'
import type { Page } from './page-list.ts'

const BODY_BYTES = 16 * 1024
const FIELDS = 20

/** The operations of the API that forms can run: the options of their routes by path below /api. */
export type Operations = ReadonlyMap<string, RouteOptions>

/** Collects the POST routes below /api that are registered in a scope from now on. */
export function collectOperations (app: FastifyInstance): Operations {
  const base = `${app.usherOptions.prefix}/api`
  const operations = new Map<string, RouteOptions>()
  app.addHook('onRoute', (route) => {
    if (route.method === 'POST' && route.url.startsWith(`${base}/`)) operations.set(route.url.slice(base.length), route)
  })
  return operations
}

/** Replaces the parsers of a scope by one of forms. */
export function addFormParser (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'buffer', bodyLimit: BODY_BYTES }, (_, body, done) => {
    if (!isUtf8(body as Buffer)) return done(new InvalidInput('the form is not valid UTF-8'))
    done(null, { ...parse(body.toString(), '&', '=', { maxKeys: FIELDS }) })
  })
}

/**
 * Returns an `onRequest` hook that accepts only forms of Usher's own pages and of allowed origins. Otherwise any site could log its
 * visitors in to an account of its own. Unlike programs, browsers say where a form comes from.
 */
export function createOriginCheck (app: FastifyInstance) {
  const { serveCookie } = createAllowedOrigins(app)
  return async (request: FastifyRequest): Promise<void> => {
    const { origin, 'sec-fetch-site': site } = request.headers
    const isOwn = site === 'same-origin' || (Boolean(origin) && origin !== 'null' && serveCookie(request))
    if (!isOwn) throw new OriginNotAllowed()
  }
}

export interface FormOptions {
  page: Page & { form: object }
  operation: RouteOptions
  checkOrigin: (request: FastifyRequest) => Promise<void>
  /** Returns where the browser goes after success. */
  nextOf: (request: FastifyRequest) => string
  /** Returns the page with a failure. */
  renderFailure: (request: FastifyRequest, error: Error & { code?: string, errors?: readonly string[] }) => string
  /** Returns the headers of the page. */
  headersOf: (request: FastifyRequest) => Record<string, string>
}

/**
 * Adds the route to which the form of a page is sent if the browser runs no scripts. The hooks and the handler of the API's operation
 * do the work, so that limits, checks and the account log are the same. Success leads to another page, and a failure to the same one.
 */
export function addForm (app: FastifyInstance, { page, operation, checkOrigin, nextOf, renderFailure, headersOf }: FormOptions): void {
  const { handler, schema, onRequest = [], preValidation = [], preHandler = [] } = operation
  app.route({
    method: 'POST',
    url: page.path,
    schema: { hide: true, body: schema!.body },
    onRequest: [checkOrigin, ...[onRequest].flat()],
    preValidation: [preValidation].flat(),
    preHandler: [preHandler].flat(),
    handler,
    // The response of the operation, which may have a token, is not sent. A hook of the host may have responded
    // instead.
    onSend (request, reply, payload, done) {
      if (reply.statusCode >= 300 || !isResponding(reply)) return done(null, payload)
      for (const name of ['content-type', 'content-length']) reply.removeHeader(name)
      reply.code(303).headers({ location: nextOf(request), 'cache-control': 'no-store' })
      done(null, '')
    },
    errorHandler (thrown, request, reply) {
      const error = translate(thrown)
      keepConnection(error, reply)
      reportError(error, request, reply)
      reply.headers({ ...headersOf(request), 'cache-control': 'no-store' }).type('text/html; charset=utf-8').send(renderFailure(request, error))
    },
  })
}
