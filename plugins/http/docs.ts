import type { SwaggerTransform } from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ErrorReply, failures } from '../../schema/http/reply.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherReference: {
      /** The routes that the API reference describes. Their URLs are relative to the prefix. */
      readonly routes: Pick<import('fastify').RouteOptions, 'method' | 'url' | 'schema'>[]
      /** The tags that were described. */
      readonly tags: { name: string, description: string }[]
    }
  }
}

// A host's @fastify/swagger also collects Usher's routes. Their schemas refer to security schemes that only Usher's own
// document defines, and would break the host's document.
const hide: SwaggerTransform = ({ url }) => ({ schema: { hide: true }, url })

// A client may send any body to any operation that is not a read, also to one that takes none.
const ofBodies = failures(400, 408, 413, 415)
// The status with which a hook of the host rejects a change is the host's.
const ofHooks = { '4xx': { ...ErrorReply, description: 'A function of the host has rejected the request' } }

/**
 * Collects the routes that are registered after this plugin and have a summary, and their tags, for
 * `routes/pages/reference.ts`.
 */
export default fp(async function docs (app) {
  const { prefix, hooks } = app.usherOptions
  const ofWrites = { ...ofBodies, ...Object.keys(hooks).length > 0 ? ofHooks : {} }
  const { routes } = app.decorate('usherReference', { routes: [], tags: [] }).usherReference
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, swaggerTransform: hide }
    const { method, schema } = route
    if (method === 'HEAD' || !schema!.summary) return
    const url = route.url.slice(prefix.length)
    const response = { ...method === 'GET' ? {} : ofWrites, ...schema!.response as object }
    routes.push({ method, url, schema: { ...schema, response } })
  })
}, { name: 'usher-docs', dependencies: ['usher-options'] })

/** Describes a tag of the API reference. */
export function describeTag (app: FastifyInstance, name: string, description: string): void {
  app.usherReference.tags.push({ name, description })
}
