import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { challengeOf, Forbidden, InvalidToken, Unauthenticated } from '../schema/errors.ts'
import type { Action, Actor } from '../schema/policy.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherAuth: ReturnType<typeof createAuth>
  }
}

function createAuth (app: FastifyInstance) {
  const { usherTokens: tokens, usherSessions: sessions, usherOptions: { policy } } = app

  /** The actor of an `Authorization` field (RFC 6750 2.1). Throws `Unauthenticated`, `InvalidToken`. */
  async function identify (authorization: string | undefined): Promise<Actor> {
    const [scheme, ...words] = authorization?.split(/ +/) ?? []
    if (scheme?.toLowerCase() !== 'bearer') throw new Unauthenticated()
    if (words.length !== 1) throw new InvalidToken()
    const actor = tokens.verify(words[0]!)
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
        // For a route of the host, whose error handler knows nothing of this.
        if ((error as FastifyError).statusCode === 401) reply.header('www-authenticate', challengeOf(error))
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
