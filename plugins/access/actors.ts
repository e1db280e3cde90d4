import type { FastifyRequest } from 'fastify'
import type { Actor } from '../../schema/options/policy.ts'

export type Actors = ReturnType<typeof createActors>

/**
 * Creates functions that store the actor of a request under the name that the host has chosen (option `actorName`). All
 * access goes through them.
 */
export function createActors (name: string) {
  const membersOf = (request: FastifyRequest) => request as unknown as Record<string, Actor | null | undefined>

  return {
    /** Returns the actor of a request. It is null until the request has been authenticated, and without a token. */
    in: (request: FastifyRequest): Actor | null => membersOf(request)[name] ?? null,

    set (request: FastifyRequest, actor: Actor | null): void {
      membersOf(request)[name] = actor
    },
  }
}

/** Returns a user as an actor who has no session yet, to ask what the user may see. */
export const actorWithoutSession = ({ id, role }: Pick<Actor, 'id' | 'role'>): Actor =>
  ({ id, role, sessionId: null, keyId: null, actions: null, amr: [], authTime: 0, organization: null, claims: {} })
