import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { Forbidden, InvalidToken, Unauthenticated } from '../schema/errors.ts'
import type { Action, Actor } from '../schema/policy.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherAuth: ReturnType<typeof createAuth>
  }
  interface FastifyRequest {
    /** The user behind the request's bearer token, once `authenticate` has run. */
    actor: Actor | null
  }
}

function createAuth (app: FastifyInstance) {
  const { usherTokens: tokens, usherSessions: sessions, usherOptions: { policy } } = app

  /** The actor of an `Authorization` field (RFC 6750 2.1). Throws `Unauthenticated`, `InvalidToken`. */
  async function identify (authorization: string | undefined): Promise<Actor> {
    const [scheme, token, ...rest] = authorization?.split(' ') ?? []
    if (scheme?.toLowerCase() !== 'bearer') throw new Unauthenticated()
    if (!token || rest.length > 0) throw new InvalidToken()
    const actor = tokens.verify(token)
    if (!await sessions.isLive(actor.sessionId)) throw new InvalidToken()
    return actor
  }

  return {
    identify,

    /** An `onRequest` hook: the request's bearer token becomes its `actor` (contract 1.5). */
    async authenticate (request: FastifyRequest, reply: FastifyReply): Promise<void> {
      try {
        request.actor = await identify(request.headers.authorization)
      } catch (error) {
        if (error instanceof Unauthenticated) reply.header('www-authenticate', 'Bearer')
        if (error instanceof InvalidToken) reply.header('www-authenticate', 'Bearer error="invalid_token"')
        throw error
      }
    },

    /** Refuses what the policy does not let the actor do. Throws `Forbidden`. */
    authorize (actor: Actor, action: Action, ownerId?: string): void {
      if (!policy[action](actor, ownerId)) throw new Forbidden()
    },
  }
}

/** Who is asking, and what they may do (contract 1.5, 1.6). */
export default fp(async function auth (app) {
  app.decorate('usherAuth', createAuth(app))
}, { name: 'usher-auth', dependencies: ['usher-tokens', 'usher-sessions'] })
