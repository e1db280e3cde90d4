import type { SwaggerTransform } from '@fastify/swagger'
import fp from 'fastify-plugin'
import { operationIdOf } from '../schema/openapi.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The routes that the API reference describes. Their URLs are relative to the prefix. */
    usherRoutes: Pick<import('fastify').RouteOptions, 'method' | 'url' | 'schema'>[]
    /** Describes a tag of the API reference. */
    usherTag (name: string, description: string): void
    /** The tags that were described. */
    usherTags: { name: string, description: string }[]
  }
}

// A host's @fastify/swagger also collects Usher's routes. Their schemas refer to security schemes that only Usher's own
// document defines, and would break the host's document.
const hide: SwaggerTransform = ({ url }) => ({ schema: { hide: true }, url })

/** Collects the routes that are registered after this plugin and have a summary, and their tags, for `routes/docs.ts`. */
export default fp(async function docs (app) {
  const { prefix } = app.usherOptions
  app.decorate('usherRoutes', [])
  app.decorate('usherTags', [])
  app.decorate('usherTag', (name, description) => { app.usherTags.push({ name, description }) })
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, swaggerTransform: hide }
    const { method, schema } = route
    if (method === 'HEAD' || !schema!.summary) return
    const url = route.url.slice(prefix.length)
    app.usherRoutes.push({ method, url, schema: { operationId: operationIdOf(`${method}`, url), ...schema } })
  })
}, { name: 'usher-docs' })
