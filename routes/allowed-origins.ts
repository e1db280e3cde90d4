import type { FastifyInstance, FastifyRequest } from 'fastify'

/**
 * Returns functions that check the header `Origin` of a request. Allowed are the request's own host, the origin of `publicUrl`, and
 * those of the option `origins`.
 */
export function createAllowedOrigins ({ usherOptions: { publicUrl, origins } }: FastifyInstance) {
  const allowed = new Set([...origins, ...publicUrl ? [new URL(publicUrl).origin] : []])

  return {
    /**
     * Returns whether the session cookie may be used by a request. Browsers send `Origin` with every POST, so a request without
     * it does not come from a browser and is allowed.
     */
    serveCookie (request: FastifyRequest): boolean {
      const { origin } = request.headers
      return !origin || origin === `${request.protocol}://${request.host}` || allowed.has(origin)
    },

    /**
     * Returns whether a page may open a WebSocket. CORS does not apply to WebSockets. The scheme of a page on the same host is
     * ignored, because a proxy may terminate TLS.
     */
    mayConnect (request: FastifyRequest): boolean {
      const { origin } = request.headers
      return !origin || allowed.has('*') || allowed.has(origin) || /^https?:\/\/(.*)$/.exec(origin)?.[1] === request.host
    },
  }
}
