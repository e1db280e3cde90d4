import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Client } from '../../db/batching/batching.ts'
import type { ClientInfo } from '../../db/sessions/sessions.ts'
import { challengeOf, InvalidToken, Unauthenticated } from '../../schema/auth/login.ts'
import { SecondFactorMissing } from '../../schema/auth/second-factor.ts'
import { isReadAction, type Action, type Actor, type ReadAction } from '../../schema/options/policy.ts'
import { hasBody } from '../http/raw/body-deadline.ts'
import type { Core } from '../core.ts'
import { clientInfoOf } from '../http/client-info.ts'
import { addVary } from '../http/vary.ts'
import { ActorWatch } from './actor-watch.ts'
import type { Actors } from './actors.ts'
import { Caller, type Access, type CallerDetails } from './caller.ts'
import type { AccessPolicy } from './policy.ts'
import type { SecondFactor } from './second-factor.ts'
import type { Sessions } from './sessions.ts'
import type { SigningKeys } from './signing-keys.ts'
import type { Tokens } from './tokens.ts'

// How often sockets and event streams are verified while this node receives no notifications.
const VERIFY_MS = 1000

interface Dependencies extends Core {
  actors: Actors
  policy: AccessPolicy
  tokens: Tokens
  sessions: Sessions
  signingKeys: SigningKeys
  secondFactor: SecondFactor
}

export type Identity = ReturnType<typeof createIdentity>

/** Identifies the actor of a request and checks what the actor may do (contract 1.5, 1.6). */
export function createIdentity (
  { lifecycle, database: { notifications }, actors, policy, tokens, sessions, signingKeys, secondFactor }: Dependencies
) {
  const actorWatch = new ActorWatch()

  /**
   * Returns the actor of an `Authorization` header (RFC 6750 2.1). Throws `Unauthenticated` if it has no bearer token,
   * `InvalidToken` if the token is invalid or its session has ended, `SecondFactorMissing` if the actor must have one,
   * and `DatabaseUnavailable`.
   *
   * @param client the connection of the request: reads for a client that has disconnected are not sent
   */
  async function identify (authorization: string | undefined, client?: Client): Promise<Actor> {
    const actor = await identifyAny(authorization, client)
    if (secondFactor.isMissing(actor)) throw new SecondFactorMissing()
    return actor
  }

  async function identifyAny (authorization: string | undefined, client?: Client): Promise<Actor> {
    const actor = await tokens.verify(tokenOf(authorization))
    if (!await isLive(actor, client)) throw new InvalidToken()
    return actor
  }

  /**
   * Returns whether an actor may still act: the token is valid and its session has not ended. Rejects with
   * `DatabaseUnavailable`.
   */
  const mayAct = (actor: Actor, client?: Client): boolean | Promise<boolean> =>
    tokens.isValid(actor) && isLive(actor, client)

  // Returns true also without an actor, and for one of another mount, which a hook of the host has set: this mount
  // cannot end its session.
  const isStillAllowed = (actor: Actor | null | undefined, client?: Client): boolean | Promise<boolean> =>
    !actor || !tokens.isOurs(actor) || mayAct(actor, client)

  // Returns whether the session has not ended and the key has not been revoked. Only a node that does not receive
  // notifications sends statements for this.
  function isLive (actor: Actor, client?: Client): boolean | Promise<boolean> {
    return sessions.isLive(actor.sessionId, tokens.tokenOf(actor).kid, client)
  }

  /** An `onRequest` hook that sets `request.actor` to the user behind the bearer token (contract 1.5). */
  const authenticate = authenticateBy(identify)

  /**
   * Does the same also for an actor who must have a second factor and lacks it, on routes that add one (contract 16.4).
   */
  const authenticateAny = authenticateBy(identifyAny)

  function authenticateBy (identifyBy: typeof identify) {
    return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      try {
        actors.set(request, await identifyBy(request.headers.authorization, request.socket))
      } catch (error) {
        // On a route of the host, the host's error handler runs, which does not set this header.
        if ((error as FastifyError).statusCode === 401) reply.header('www-authenticate', challengeOf(error))
        throw error
      }
    }
  }

  /** Returns the actor of a request that has passed `authenticate`. Throws `Unauthenticated` if there is none. */
  function actorOf (request: FastifyRequest): Actor {
    const actor = actors.in(request)
    if (!actor) throw new Unauthenticated()
    return actor
  }

  // An `onRequest` hook that sets `request.actor` to the reader, or to null without a token.
  async function identifyReader (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    // The response depends on the reader, so caches must not use it for others.
    reply.header('cache-control', 'private, no-cache')
    addVary(reply, 'Authorization')
    actors.set(request, null)
    if (request.headers.authorization !== undefined) await authenticate(request, reply)
  }

  /**
   * Returns `onRequest` hooks that identify the reader, who may be nobody. If anyone may do all of `actions`, there are
   * none: tokens are ignored, and reads cost no more than without a policy.
   */
  const identifies = (...actions: readonly ReadAction[]) => policy.isOpen(...actions) ? [] : [identifyReader]

  const access: Access = { policy, tokenOf: tokens.tokenOf, isStillAllowed: mayAct }
  const callers = new WeakMap<FastifyRequest, Caller>()

  /**
   * Returns who performs the operation of a request: its actor, if there is one, with the connection and the origin. A
   * request has one caller, which is made when it is first needed.
   * @param details the actor of an operation that does not depend on the one of the request, and what performs it
   */
  function callerOf (
    request: FastifyRequest, { actor = actors.in(request), via }: Partial<Pick<CallerDetails, 'actor' | 'via'>> = {}
  ): Caller {
    const made = callers.get(request)
    // A hook of the host may have identified somebody else since.
    if (made?.actor === actor && (via === undefined || made.via === via)) return made
    const { socket: client, log } = request
    const caller = new Caller({ actor, client, log, via: via ?? 'rest', ...clientInfoOf(request) }, access)
    callers.set(request, caller)
    return caller
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

  return {
    identify,
    identifies,
    callerOf,

    /** Returns the caller of an operation that is not the only one of its request, or has none. */
    createCaller: (details: CallerDetails): Caller => new Caller(details, access),

    /** Returns the caller of an operation of the host. */
    createHostCaller: (details: Pick<CallerDetails, 'via'> & Partial<ClientInfo>): Caller =>
      new Caller({ actor: null, isHost: true, address: '', userAgent: '', log: lifecycle.log, ...details }, access),

    /**
     * Calls `onEnd` when the actor's session ends, when its signing key is revoked, and when the token expires, also if
     * that has happened since the actor was identified. Returns a function that stops watching.
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
     * Ends everything that is watched and whose actor may not act any more. A node that receives notifications knows
     * who that is, any other one asks the database. Rejects with `DatabaseUnavailable`.
     */
    verifyWatched: (): Promise<void> => actorWatch.verifyAll(),

    /**
     * Checks again that the reader may act, because a read may have waited. Somebody without an account always may, and
     * so may an actor of another mount, which a hook of the host has set. Throws `InvalidToken`, `DatabaseUnavailable`.
     */
    async confirmReader (reader: Actor | null | undefined, client?: Client): Promise<void> {
      if (!await isStillAllowed(reader, client)) throw new InvalidToken()
    },

    isStillAllowed,

    /**
     * Returns the error of an operation that has failed, which is `InvalidToken` in place of another rejection if the
     * actor may not act any more (contract 1.12). A rejection says what exists, for example, and is then not for this
     * actor. Rejects with `DatabaseUnavailable`.
     */
    rejectionOf<Failure extends Error & { statusCode?: number }> (
      error: Failure, actor: Actor | null | undefined, client?: Client
    ): Failure | FastifyError | Promise<Failure | FastifyError> {
      const { statusCode = 500 } = error
      if (statusCode < 400 || statusCode === 401 || statusCode >= 500) return error
      const may = isStillAllowed(actor, client)
      const choose = (may: boolean) => may ? error : new InvalidToken()
      return typeof may === 'boolean' ? choose(may) : may.then(choose)
    },

    authenticate,
    authenticateAny,
    actorOf,

    /**
     * Returns `onRequest` hooks that identify the actor, and ask the policy before the body of the request arrives.
     * Operations ask it again when they write. An action that reads needs no actor, so if anyone may perform it, nobody
     * is asked.
     * @param ownerOf returns the id of the user whose resource the request is about, if the rule depends on it
     * @param others further actions on which the response depends
     */
    allow (
      action: Action | ReadAction, ownerOf?: (request: FastifyRequest) => string | undefined,
      others: readonly ReadAction[] = []
    ) {
      if (!isReadAction(action)) {
        const authorize = async (request: FastifyRequest) => callerOf(request).authorize(action, ownerOf?.(request))
        return [authenticate, authorize]
      }
      const authorize = async (request: FastifyRequest) =>
        policy.authorize(actors.in(request), action, ownerOf?.(request))
      return [...identifies(action, ...others), ...policy.isOpen(action) ? [] : [authorize]]
    },

    /**
     * A `preValidation` hook that checks the actor again when the body of the request is complete (contract 1.12). It
     * has no effect on requests without an actor or a body, nor on an actor of another mount, which a hook of the host
     * has set.
     */
    reconfirm (request: FastifyRequest, _: FastifyReply, done: (error?: Error) => void): void {
      const { raw, socket } = request
      const may = !hasBody(raw) || isStillAllowed(actors.in(request), socket)
      if (may === true) return done()
      Promise.resolve(may).then((may) => done(may ? undefined : new InvalidToken()), done)
    },
  }
}

function tokenOf (authorization: string | undefined): string {
  const [scheme, ...words] = authorization?.split(/ +/) ?? []
  if (scheme?.toLowerCase() !== 'bearer') throw new Unauthenticated()
  if (words.length !== 1) throw new InvalidToken()
  return words[0]!
}
