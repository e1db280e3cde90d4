import helmet from '@fastify/helmet'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'

const YEAR_SECONDS = 31_536_000

/** Sets the security headers, and the request's id. */
export type SetHeaders = (request: FastifyRequest, reply: FastifyReply) => void

/** @param origins the origins that may read responses from a browser, or `*` */
export async function createHeaders (origins: readonly string[]): Promise<SetHeaders> {
  const secure = await securityHeaders(origins.length > 0)
  // RFC 6797 7.2: never over plain HTTP.
  const { 'strict-transport-security': _, ...plain } = secure
  return (request, reply) => {
    reply.headers(request.protocol === 'https' ? secure : plain).header('x-request-id', request.id)
  }
}

/**
 * The headers that @fastify/helmet sets, taken from it once: it computes them anew for each request, which costs
 * half of the throughput. Set as ordinary headers, they also leave a page its own policy. Those that speak to
 * browsers of the past or to pages alone are left out.
 */
async function securityHeaders (shared: boolean): Promise<Record<string, string>> {
  const probe = Fastify()
  await probe.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    // An origin that may read an upload by a script may also show it.
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
