import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Actor } from '../../schema/policy.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherActor: ReturnType<typeof createActor>
  }
}

// The host chooses the name of the member, so all access goes through these functions.
function createActor (name: string) {
  const membersOf = (request: FastifyRequest) => request as unknown as Record<string, Actor | null | undefined>

  return {
    /** Returns the actor of a request. It is null until the request has been authenticated, and without a token. */
    in: (request: FastifyRequest): Actor | null => membersOf(request)[name] ?? null,

    set (request: FastifyRequest, actor: Actor | null): void {
      membersOf(request)[name] = actor
    },
  }
}

/** Stores the actor of a request under the name that the host has chosen (option `actorName`). */
export default fp(async function actor (app) {
  app.decorate('usherActor', createActor(app.usherOptions.actorName))
}, { name: 'usher-actor', dependencies: ['usher-options'] })
