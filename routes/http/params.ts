import type { FastifyRequest } from 'fastify'

/** Returns the id in the path of a request, as records have it. Throws an `Error` if the route has no `:id`. */
export function idOf ({ params }: Pick<FastifyRequest, 'params'>): string {
  if (typeof params !== 'object' || params === null || !('id' in params) || typeof params.id !== 'string') {
    throw new Error('the path of this route has no :id')
  }
  return params.id.toLowerCase()
}
