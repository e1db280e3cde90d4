import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Client } from '../../db/batching/batching.ts'
import { Forbidden } from '../../schema/http/errors.ts'
import { challengeOf, InvalidToken, Unauthenticated } from '../../schema/auth/login.ts'
import type { Action, Actor } from '../../schema/options/policy.ts'
import { hasBody } from '../http/raw/body-deadline.ts'
import type { Core } from '../core.ts'
import { clientInfoOf } from '../http/client-info.ts'
import { ActorWatch } from './actor-watch.ts'
import type { Actors } from './actors.ts'
import { Caller, type CallerDetails, type Permissions } from './caller.ts'
import type { Sessions } from './sessions.ts'
import type { SigningKeys } from './signing-keys.ts'
import type { Tokens } from './tokens.ts'

// How often sockets and event streams are verified while this node receives no notifications.
const VERIFY_MS = 1000

interface Dependencies extends Core {
  actors: Actors
  tokens: Tokens
  sessions: Sessions
  signingKeys: SigningKeys
}

export type Identity = ReturnType<typeof createIdentity>

/** Identifies the actor of a request and checks what the actor may do (contract 1.5, 1.6). */
export function createIdentity ({ lifecycle, database: { notifications }, options: { policy }, actors, tokens, sessions, signingKeys }: Dependencies) {
  const actorWatch = new ActorWatch()

  /**
   * Returns the actor of an `Authorization` header (RFC 6750 2.1). Throws `Unauthenticated` if it has no bearer token,
   * `InvalidToken` if the token is invalid or its session has ended, and `DatabaseUnavailable`.
   *
   * @param client the connection of the request: reads for a client that has disconnected are not sent
   */
  async function identify (authorization: string | undefined, client?: Client): Promise<Actor> {
    const actor = await tokens.verify(tokenOf(authorization))
    if (!await isLive(actor, client)) throw new InvalidToken()
    return actor
  }

  /** Returns whether the policy permits an action. */
  const allows = (actor: Actor, action: Action, ownerId?: string): boolean => policy[action](actor, ownerId)

  /** Returns whether an actor may still act: the token is valid and its session has not ended. Rejects with `DatabaseUnavailable`. */
  const mayAct = (actor: Actor, client?: Client): boolean | Promise<boolean> => tokens.isValid(actor) && isLive(actor, client)

  // Returns true also without an actor, and for one of another mount, which a hook of the host has set: this mount cannot end its session.
  const mayStillAct = (actor: Actor | null | undefined, client?: Client): boolean | Promise<boolean> =>
    !actor || !tokens.isOurs(actor) || mayAct(actor, client)

  // Returns whether the session has not ended and the key has not been revoked. Only a node that does not receive
  // notifications sends statements for this.
  function isLive (actor: Actor, client?: Client): boolean | Promise<boolean> {
    return sessions.isLive(actor.sessionId, tokens.tokenOf(actor).kid, client)
  }

  /** An `onRequest` hook that sets `request.actor` to the user behind the bearer token (contract 1.5). */
  async function authenticate (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    try {
      actors.set(request, await identify(request.headers.authorization, request.socket))
    } catch (error) {
      // On a route of the host, the host's error handler runs, which does not set this header.
      if ((error as FastifyError).statusCode === 401) reply.header('www-authenticate', challengeOf(error))
      throw error
    }
  }

  /** Returns the actor of a request that has passed `authenticate`. Throws `Unauthenticated` if there is none. */
  function actorOf (request: FastifyRequest): Actor {
    const actor = actors.in(request)
    if (!actor) throw new Unauthenticated()
    return actor
  }

  /** Throws `Forbidden` if the policy does not permit an action. */
  function authorize (actor: Actor, action: Action, ownerId?: string): void {
    if (!allows(actor, action, ownerId)) throw new Forbidden()
  }

  // Calls `onEnd` when a session ends, and when something does not hold. Returns a function that stops watching.
  function watchWhile (
    isStillAllowed: () => boolean | Promise<boolean>, sessionId: string, onEnd: () => void
  ): () => void {
    // Several watchers may have the same callback.
    const end = () => onEnd()
    const stops = [sessions.watch(sessionId, end), actorWatch.add(isStillAllowed, end)]
    return () => { for (const stop of stops) stop() }
  }

  const timer = setInterval(() => { if (!notifications.listening) actorWatch.verifyLater() }, VERIFY_MS).unref()
  lifecycle.addHook('onClose', async () => clearInterval(timer))
  signingKeys.onRead(() => actorWatch.verifyLater())

  const allowsReading: Permissions['allowsReading'] = (reader, action, ownerId) => policy[action](reader, ownerId)
  const permissions: Permissions = { tokenOf: tokens.tokenOf, mayAct, allows, allowsReading }

  return {
    identify,
    allows,

    /**
     * Returns who performs the operation of a request: its actor, if there is one, with the connection and the origin.
     * @param details members that differ, such as the actor of an operation over a socket
     */
    callerOf (request: FastifyRequest, details: Partial<CallerDetails> = {}): Caller {
      const { socket: client, log } = request
      return new Caller({ actor: actors.in(request), client, log, via: 'rest', ...clientInfoOf(request), ...details }, permissions)
    },

    /** Returns the caller of an operation that no request performs. By default, that is the host. */
    createCaller: (details: Partial<CallerDetails> & Pick<CallerDetails, 'via'>): Caller =>
      new Caller({ actor: null, isHost: true, address: '', userAgent: '', log: lifecycle.log, ...details }, permissions),

    /**
     * Calls `onEnd` when the actor's session ends, when its signing key is revoked, and when the token expires, also if that has happened
     * since the actor was identified. Returns a function that stops watching.
     *
     * @param authorization the header by which the actor was identified
     */
    watch (authorization: string, actor: Actor, onEnd: () => void): () => void {
      const timer = setTimeout(onEnd, tokens.timeLeftOf(tokenOf(authorization))).unref()
      const unwatch = watchWhile(() => mayAct(actor), actor.sessionId, onEnd)
      return () => {
        clearTimeout(timer)
        unwatch()
      }
    },

    /** Does the same only when the session ends. The token may expire or lose its key during a long download. */
    watchSession: (actor: Actor, onEnd: () => void): () => void =>
      watchWhile(() => !tokens.isOurs(actor) || sessions.exists(actor.sessionId), actor.sessionId, onEnd),

    /**
     * Ends everything that is watched and whose actor may not act any more. A node that receives notifications knows who that is, any other
     * one asks the database. Rejects with `DatabaseUnavailable`.
     */
    verifyWatched: (): Promise<void> => actorWatch.verifyAll(),

    /**
     * Checks again that the reader may act, because a read may have waited. Somebody without an account always may, and so may an actor
     * of another mount, which a hook of the host has set. Throws `InvalidToken`, `DatabaseUnavailable`.
     */
    async confirmReader (reader: Actor | null | undefined, client?: Client): Promise<void> {
      if (!await mayStillAct(reader, client)) throw new InvalidToken()
    },

    mayStillAct,

    /**
     * Returns the error of an operation that has failed, which is `InvalidToken` in place of another rejection if the actor may not act any
     * more (contract 1.12). A rejection says what exists, for example, and is then not for this actor. Rejects with `DatabaseUnavailable`.
     */
    rejectionOf<Failure extends Error & { statusCode?: number }> (
      error: Failure, actor: Actor | null | undefined, client?: Client
    ): Failure | FastifyError | Promise<Failure | FastifyError> {
      const { statusCode = 500 } = error
      if (statusCode < 400 || statusCode === 401 || statusCode >= 500) return error
      const may = mayStillAct(actor, client)
      const choose = (may: boolean) => may ? error : new InvalidToken()
      return typeof may === 'boolean' ? choose(may) : may.then(choose)
    },

    authenticate,
    actorOf,

    /**
     * Returns `onRequest` hooks that authenticate the request and check the policy.
     * @param ownerOf returns the id of the user whose resource the request is about, if the rule depends on it
     */
    allow: (action: Action, ownerOf?: (request: FastifyRequest, actor: Actor) => string | undefined) => [authenticate, async (request: FastifyRequest) => {
      const actor = actorOf(request)
      authorize(actor, action, ownerOf?.(request, actor))
    }],

    /**
     * A `preValidation` hook that checks the actor again when the body of the request is complete (contract 1.12). It has
     * no effect on requests without an actor or a body, nor on an actor of another mount, which a hook of the host has set.
     */
    reconfirm (request: FastifyRequest, _: FastifyReply, done: (error?: Error) => void): void {
      const { raw, socket } = request
      const may = !hasBody(raw) || mayStillAct(actors.in(request), socket)
      if (may === true) return done()
      Promise.resolve(may).then((may) => done(may ? undefined : new InvalidToken()), done)
    },

    authorize,
  }
}

function tokenOf (authorization: string | undefined): string {
  const [scheme, ...words] = authorization?.split(/ +/) ?? []
  if (scheme?.toLowerCase() !== 'bearer') throw new Unauthenticated()
  if (words.length !== 1) throw new InvalidToken()
  return words[0]!
}
