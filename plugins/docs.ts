import type { SwaggerTransform } from '@fastify/swagger'
import fp from 'fastify-plugin'
import { operationIdOf } from '../schema/openapi.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The routes that the reference describes, their URLs without the prefix. */
    usherRoutes: Pick<RouteOptions, 'method' | 'url' | 'schema'>[]
  }
}

// A host's @fastify/swagger collects Usher's routes too. What they say makes sense beside the security schemes
// of Usher's own document only, and the lack of these would break the host's.
const hide: SwaggerTransform = ({ url }) => ({ schema: { hide: true }, url })

/** Collects the routes that are registered after it, for `routes/docs.ts`: those that have a summary. */
export default fp(async function docs (app) {
  const { prefix } = app.usherOptions
  app.decorate('usherRoutes', [])
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, swaggerTransform: hide }
    const { method, schema } = route
    if (method === 'HEAD' || !schema!.summary) return
    const url = route.url.slice(prefix.length)
    app.usherRoutes.push({ method, url, schema: { operationId: operationIdOf(`${method}`, url), ...schema } })
  })
}, { name: 'usher-docs' })
