import helmet from '@fastify/helmet'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'

const YEAR_SECONDS = 31_536_000

/** Sets the security headers, and the request's id. */
export type SetHeaders = (request: FastifyRequest, reply: FastifyReply) => void

/**
 * Returns a function that sets the security headers and the request's id on a response.
 *
 * @param origins the origins whose pages may read responses, or `*`
 */
export async function createHeaders (origins: readonly string[]): Promise<SetHeaders> {
  const secure = await securityHeaders(origins.length > 0)
  // RFC 6797 7.2: this header must not be sent over plain HTTP.
  const { 'strict-transport-security': _, ...plain } = secure
  return (request, reply) => {
    reply.headers(request.protocol === 'https' ? secure : plain).header('x-request-id', request.id)
  }
}

/**
 * Returns the headers that @fastify/helmet sets. They are read from it once, because it computes them for each request, which
 * halves the throughput. A page can also replace its policy if these are ordinary headers. Headers that only concern old
 * browsers or pages are left out.
 */
async function securityHeaders (shared: boolean): Promise<Record<string, string>> {
  const probe = Fastify()
  await probe.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    // An origin whose scripts may read an upload may also embed it.
    crossOriginResourcePolicy: { policy: shared ? 'cross-origin' : 'same-origin' },
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    strictTransportSecurity: { maxAge: YEAR_SECONDS },
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xFrameOptions: { action: 'deny' },
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  })
  probe.get('/', (_, reply) => reply.send(reply.raw.getHeaders()))
  return (await probe.inject('/')).json()
}
