import type { FastifyInstance, FastifyRequest } from 'fastify'

/** The origins that may do what a page of any other may not: Usher's own, and those that the host names. */
export function createAllowedOrigins ({ usherOptions: { publicUrl, origins } }: FastifyInstance) {
  const allowed = new Set([...origins, ...publicUrl ? [new URL(publicUrl).origin] : []])

  return {
    /** Whether the session cookie serves where a request comes from. A browser says so in every POST; what says nothing is none. */
    serveCookie (request: FastifyRequest): boolean {
      const { origin } = request.headers
      return !origin || origin === `${request.protocol}://${request.host}` || allowed.has(origin)
    },

    /** Whether a page may open a socket, which no CORS protects: also one of this host behind a proxy that speaks TLS for it. */
    mayConnect (request: FastifyRequest): boolean {
      const { origin } = request.headers
      return !origin || allowed.has('*') || allowed.has(origin) || /^https?:\/\/(.*)$/.exec(origin)?.[1] === request.host
    },
  }
}
