import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Client } from '../../db/batching.ts'
import { challengeOf, Forbidden, InvalidToken, Unauthenticated } from '../../schema/errors.ts'
import type { Action, Actor } from '../../schema/policy.ts'
import { hasBody } from '../body-deadline.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherAuth: ReturnType<typeof createAuth>
  }
}

function createAuth (app: FastifyInstance) {
  const { usherTokens: tokens, usherSessions: sessions, usherOptions: { policy } } = app

  /** The actor of an `Authorization` field (RFC 6750 2.1), for a client that may go. Throws `Unauthenticated`, `InvalidToken`. */
  async function identify (authorization: string | undefined, client?: Client): Promise<Actor> {
    const actor = await tokens.verify(tokenOf(authorization))
    if (!await isLive(actor, client)) throw new InvalidToken()
    return actor
  }

  /** Whether the policy lets the actor do something. */
  const allows = (actor: Actor, action: Action, ownerId?: string): boolean => policy[action](actor, ownerId)

  /** Returns whether an actor may still act: the token is valid and its session has not ended. Rejects with `DatabaseUnavailable`. */
  const mayAct = (actor: Actor, client?: Client): boolean | Promise<boolean> => tokens.isValid(actor) && isLive(actor, client)

  // Neither the session has ended nor the key been revoked. It takes statements only on a node that has lost the notifications.
  function isLive (actor: Actor, client?: Client): boolean | Promise<boolean> {
    const session = sessions.isLive(actor.sessionId, client)
    if (session === false) return false
    const key = tokens.isKeyLive(actor, client)
    return session === true && key === true ? true : Promise.all([session, key]).then(([session, key]) => session && key)
  }

  return {
    identify,
    allows,

    /** Returns an actor's connection as the client of a write, which is rejected if the actor may not act any more when it is sent. */
    callerOf: (actor: Actor, client: Client): Client => new Caller(client, () => mayAct(actor, client)),

    /**
     * Checks again, right before something takes effect, that the actor may still act: authentication ran when the head
     * of the request arrived, and its body may have taken a while (contract 1.12). It costs a statement only on a node
     * that has lost the notifications. Throws `InvalidToken`, `DatabaseUnavailable`.
     */
    async confirm (actor: Actor, client?: Client): Promise<void> {
      if (!await mayAct(actor, client)) throw new InvalidToken()
    },

    /**
     * Calls back once, when an actor who was identified is none any more: the session has ended, or the token has expired.
     * Until the function that it returns is called.
     */
    watch (authorization: string, { sessionId }: Actor, over: () => void): () => void {
      const timer = setTimeout(over, tokens.timeLeftOf(tokenOf(authorization))).unref()
      const unwatch = sessions.watch(sessionId, over)
      return () => {
        clearTimeout(timer)
        unwatch()
      }
    },

    /** An `onRequest` hook: the request's bearer token becomes its `actor` (contract 1.5). */
    async authenticate (request: FastifyRequest, reply: FastifyReply): Promise<void> {
      try {
        request.actor = await identify(request.headers.authorization, request.socket)
      } catch (error) {
        // For a route of the host, whose error handler knows nothing of this.
        if ((error as FastifyError).statusCode === 401) reply.header('www-authenticate', challengeOf(error))
        throw error
      }
    },

    /**
     * A `preValidation` hook: confirms the actor again when the body of the request is complete (contract 1.12). It has
     * no effect on requests without an actor or a body, nor on an actor of another mount, whom a hook of the host has set.
     */
    reconfirm ({ actor, raw, socket }: FastifyRequest, _: FastifyReply, done: (error?: Error) => void): void {
      const may = actor === null || !hasBody(raw) || !tokens.isOurs(actor) || mayAct(actor, socket)
      if (may === true) return done()
      Promise.resolve(may).then((may) => done(may ? undefined : new InvalidToken()), done)
    },

    /** Refuses what the policy does not let the actor do. Throws `Forbidden`. */
    authorize (actor: Actor, action: Action, ownerId?: string): void {
      if (!allows(actor, action, ownerId)) throw new Forbidden()
    },
  }
}

class Caller implements Client {
  readonly #client: Client
  readonly mayAct: () => boolean | Promise<boolean>

  constructor (client: Client, mayAct: () => boolean | Promise<boolean>) {
    this.#client = client
    this.mayAct = mayAct
  }

  get destroyed (): boolean {
    return this.#client.destroyed
  }
}

function tokenOf (authorization: string | undefined): string {
  const [scheme, ...words] = authorization?.split(/ +/) ?? []
  if (scheme?.toLowerCase() !== 'bearer') throw new Unauthenticated()
  if (words.length !== 1) throw new InvalidToken()
  return words[0]!
}

/** Who is asking, and what they may do (contract 1.5, 1.6). */
export default fp(async function auth (app) {
  app.decorate('usherAuth', createAuth(app))
}, { name: 'usher-auth', dependencies: ['usher-tokens', 'usher-sessions'] })
