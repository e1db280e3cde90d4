import type { FastifyReply, FastifyRequest } from 'fastify'

/** Sets the security headers, and the request's id. */
export type SetHeaders = (request: FastifyRequest, reply: FastifyReply) => void

/**
 * The headers of @fastify/helmet that concern an API in today's browsers; a test compares them. The plugin is not
 * registered, because it computes its constant headers for each request, which halves the throughput. A page can
 * replace its policy, since these are ordinary headers.
 */
const HEADERS = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}
const STRICT_TRANSPORT_SECURITY = 'max-age=31536000; includeSubDomains'

/**
 * Returns a function that sets the security headers and the request's id on a response.
 *
 * @param origins the origins whose pages may read responses, or `*`
 */
export function createHeaders (origins: readonly string[]): SetHeaders {
  // An origin whose scripts may read an upload may also embed it.
  const plain = { ...HEADERS, 'cross-origin-resource-policy': origins.length > 0 ? 'cross-origin' : 'same-origin' }
  // RFC 6797 7.2: this header must not be sent over plain HTTP.
  const secure = { ...plain, 'strict-transport-security': STRICT_TRANSPORT_SECURITY }
  return (request, reply) => {
    reply.headers(request.protocol === 'https' ? secure : plain).header('x-request-id', request.id)
  }
}
