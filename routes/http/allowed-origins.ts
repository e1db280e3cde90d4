import type { FastifyInstance, FastifyRequest } from 'fastify'
import { createOriginCheck, normalizeOrigin } from '../../schema/http/origin.ts'

/**
 * Returns functions that check the header `Origin` of a request. Allowed are the request's own host, the origin of
 * `publicUrl`, and those of the option `origins`.
 */
export function createAllowedOrigins ({ usherOptions: { publicUrl, origins } }: FastifyInstance) {
  const isAllowed = createOriginCheck([...origins, ...publicUrl ? [new URL(publicUrl).origin] : []])
  const isOpen = origins.includes('*')

  /**
   * Returns whether the session cookie may be used by a request. Browsers send `Origin` with every POST, so a request
   * without it does not come from a browser and is allowed.
   */
  function serveCookie (request: FastifyRequest): boolean {
    const { origin } = request.headers
    return !origin || isAtOwnHost(request, request.protocol, origin) || isAllowed(origin)
  }

  return {
    serveCookie,

    /**
     * Returns the same for a cookie by which a mail belongs to the browser that has asked for it. The browser itself
     * may say that the page is of the same origin, behind a proxy that changes scheme or host.
     */
    serveMailCookie: (request: FastifyRequest): boolean =>
      request.headers['sec-fetch-site'] === 'same-origin' || serveCookie(request),

    /**
     * Returns whether a page may open a WebSocket. CORS does not apply to WebSockets. The scheme of a page on the same
     * host is ignored, because a proxy may terminate TLS.
     */
    mayConnect (request: FastifyRequest): boolean {
      const { origin } = request.headers
      return !origin || isOpen || isAllowed(origin) ||
        ['https', 'http'].some((scheme) => isAtOwnHost(request, scheme, origin))
    },
  }
}

/** Returns whether an origin is that of the host to which a request was sent, with this scheme. */
export function isAtOwnHost ({ host }: FastifyRequest, scheme: string, origin: string): boolean {
  const own = `${scheme}://${host}`
  return own === origin || (normalizeOrigin(own) ?? own) === normalizeOrigin(origin)
}
