import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Client } from '../../db/batching/batching.ts'
import type { ClientInfo } from '../../db/access/sessions.ts'
import { challengeOf, InvalidToken, MembershipEnded, Unauthenticated } from '../../schema/sign-in/login.ts'
import { SecondFactorMissing } from '../../schema/sign-in/second-factor.ts'
import { isGranted, isReadAction, type Action, type Actor, type ReadAction } from '../../schema/options/policy.ts'
import { hasBody } from '../http/raw/body-deadline.ts'
import type { Core } from '../core.ts'
import { clientInfoOf } from '../http/client-info.ts'
import { addVary } from '../http/vary.ts'
import { ActorWatch } from './actor-watch.ts'
import type { Actors } from './actors.ts'
import { Caller, type CallerAccess, type CallerDetails } from './caller.ts'
import type { ApiKeyVerification } from '../sign-in/api-keys/verification.ts'
import { isApiKey } from '../sign-in/api-keys/format.ts'
import { denialOf, requireSession, type AccessPolicy } from './policy.ts'
import type { SecondFactorRule } from './second-factor-rule.ts'
import type { TokenIds } from '../../db/access/live-sessions.ts'
import type { Sessions } from './sessions.ts'
import type { SigningKeys } from './signing-keys.ts'
import type { Tokens } from './tokens.ts'
import type { Writers } from './writers.ts'

// How often sockets and event streams are verified while this node receives no notifications.
const VERIFY_MS = 1000
// Reads write nothing into the account log, so where they come from is not looked up, which takes microseconds.
const NOWHERE = { address: '', userAgent: '' } as const
// The longest time that a timer can wait for.
const MAX_TIMER_MS = 2 ** 31 - 1

interface Dependencies extends Core {
  actors: Actors
  policy: AccessPolicy
  tokens: Tokens
  apiKeys: ApiKeyVerification
  writers: Writers
  sessions: Sessions
  signingKeys: SigningKeys
  secondFactor: SecondFactorRule
}

export type Identity = ReturnType<typeof createIdentity>

/** Identifies the actor of a request and checks what the actor may do (contract 1.5, 1.6). */
export function createIdentity (
  {
    lifecycle, database: { notifications, clock }, actors, policy, tokens, apiKeys, writers, sessions, signingKeys,
    secondFactor,
  }: Dependencies
) {
  const actorWatch = new ActorWatch()

  /**
   * Returns the actor of an `Authorization` header (RFC 6750 2.1), with a token or an API key. Throws `Unauthenticated`
   * if it has neither, `InvalidToken` if it is invalid, or its session has ended, `MembershipEnded` if only the
   * membership has, `SecondFactorMissing` if the actor must have one, and `DatabaseUnavailable`.
   *
   * @param client the connection of the request: reads for a client that has disconnected are not sent
   */
  async function identify (authorization: string | undefined, client?: Client): Promise<Actor> {
    const actor = await identifyAny(authorization, client)
    if (isSecondFactorMissing(actor)) throw new SecondFactorMissing()
    return actor
  }

  async function identifyAny (authorization: string | undefined, client?: Client): Promise<Actor> {
    const token = tokenOf(authorization)
    const actor = await (isApiKey(token) ? apiKeys.verify(token, client) : tokens.verify(token))
    if (!await isLive(actor, client)) throw await endOf(actor, client)
    return actor
  }

  // What a key does is done without its user. So its user must have had the second factor when it was created.
  const isSecondFactorMissing = (actor: Actor): boolean => actor.keyId === null
    ? secondFactor.isMissing(actor)
    : secondFactor.isRequired(actor) && !apiKeys.isMultiFactor(actor)

  /**
   * Returns whether an actor may still act: the token is valid and its session has not ended. Rejects with
   * `DatabaseUnavailable`.
   */
  const mayAct = (actor: Actor, client?: Client): boolean | Promise<boolean> =>
    writers.isValid(actor) && isLive(actor, client)

  // Returns true also without an actor, and for one of another mount, which a hook of the host has set: this mount
  // cannot end its session.
  const isStillAllowed = (actor: Actor | null | undefined, client?: Client): boolean | Promise<boolean> =>
    !actor || !writers.isOurs(actor) || mayAct(actor, client)

  // Returns whether the session has not ended and the signing key has not been revoked, or the API key exists. Only a
  // node that does not receive notifications sends statements for this.
  function isLive (actor: Actor, client?: Client): boolean | Promise<boolean> {
    return actor.keyId === null ? sessions.isLive(writers.tokenOf(actor), client) : apiKeys.isLive(actor, client)
  }

  /**
   * Returns the error of an actor who may not act any more: `MembershipEnded` if only the membership has ended, so that
   * the client refreshes the session and goes on, otherwise `InvalidToken`. Rejects with `DatabaseUnavailable`.
   */
  async function endOf (actor: Actor, client?: Client): Promise<FastifyError> {
    // An API key does not go on without its membership.
    const hasLost = actor.keyId === null && writers.isValid(actor) &&
      await sessions.hasLostMembership(writers.tokenOf(actor), client)
    return hasLost ? new MembershipEnded() : new InvalidToken()
  }

  /** An `onRequest` hook that sets `request.actor` to the user behind the bearer token (contract 1.5). */
  const authenticate = authenticateBy(identify)

  /**
   * Does the same also for an actor who must have a second factor and lacks it, on routes that add one (contract 16.4).
   * Throws `SessionRequired` for an API key.
   */
  const authenticateAny = authenticateBy(async (authorization, client) => {
    const actor = await identifyAny(authorization, client)
    requireSession(actor)
    return actor
  })

  /** An `onRequest` hook that does the same as `authenticate`, and throws `SessionRequired` for an API key. */
  const authenticateSession = authenticateBy(async (authorization, client) => {
    const actor = await identify(authorization, client)
    requireSession(actor)
    return actor
  })

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
   * Sets `request.actor` to the reader, unless the token is missing or rejected: whoever learned of a rejection would
   * learn that the response depends on the reader. Rejects with `DatabaseUnavailable`.
   */
  async function identifyQuietly (request: FastifyRequest): Promise<void> {
    const { headers: { authorization }, socket } = request
    if (authorization === undefined) return
    try {
      actors.set(request, await identify(authorization, socket))
    } catch (error) {
      const { statusCode } = error as FastifyError
      if (statusCode !== 401 && statusCode !== 403) throw error
    }
  }

  /**
   * Returns `onRequest` hooks that identify the reader, who may be nobody. If anyone may do all of `actions`, there are
   * none: tokens are ignored, and reads cost no more than without a policy.
   */
  const identifies = (...actions: readonly ReadAction[]) => policy.isOpen(...actions) ? [] : [identifyReader]

  const access: CallerAccess = { policy, tokenOf: writers.tokenOf, isStillAllowed: mayAct, endOf }
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

  /**
   * Returns who performs the operation of a request that reads. Unlike with `callerOf`, an actor of another mount is
   * nobody: a hook of the host may have set it where readers are not identified.
   */
  function readerOf (request: FastifyRequest): Caller {
    const identified = actors.in(request)
    const actor = identified && writers.isOurs(identified) ? identified : null
    const { socket: client, log } = request
    return new Caller({ actor, client, log, via: 'rest', ...NOWHERE }, access)
  }

  // Calls `onEnd` when a session or a membership ends, and when something does not hold. Returns a function that stops
  // watching.
  function watchWhile (
    isStillAllowed: () => boolean | Promise<boolean>, { id, membershipId }: TokenIds, onEnd: () => void
  ): () => void {
    // Several watchers may have the same callback.
    const end = () => onEnd()
    const ids = membershipId === undefined ? [id] : [id, membershipId]
    const stops = [...ids.map((id) => sessions.watch(id, end)), actorWatch.add(isStillAllowed, end)]
    return () => { for (const stop of stops) stop() }
  }

  const timer = setInterval(() => { if (!notifications.listening) actorWatch.verifyLater() }, VERIFY_MS).unref()
  lifecycle.addHook('onClose', async () => clearInterval(timer))
  signingKeys.onRead(() => actorWatch.verifyLater())

  return {
    identify,
    identifies,
    identifyQuietly,
    callerOf,
    readerOf,

    /** Returns the caller of an operation that is not the only one of its request, or has none. */
    createCaller: (details: CallerDetails): Caller => new Caller(details, access),

    /** Returns the caller of an operation of the host. */
    createHostCaller: (details: Pick<CallerDetails, 'via'> & Partial<ClientInfo>): Caller =>
      new Caller({ actor: null, isHost: true, address: '', userAgent: '', log: lifecycle.log, ...details }, access),

    /**
     * Calls `onEnd` when the actor's session or membership ends, when its signing key is revoked, when the API key is
     * deleted, and when the token or the key expires, also if that has happened since the actor was identified. Returns
     * a function that stops watching.
     */
    watch (actor: Actor, onEnd: () => void): () => void {
      const token = writers.tokenOf(actor)
      const { expires } = token
      let timer: NodeJS.Timeout
      const wait = () => {
        const left = expires - clock.now()
        timer = setTimeout(left > MAX_TIMER_MS ? wait : onEnd, Math.min(Math.max(0, left), MAX_TIMER_MS)).unref()
      }
      wait()
      const unwatch = watchWhile(() => mayAct(actor), token, onEnd)
      return () => {
        clearTimeout(timer)
        unwatch()
      }
    },

    /**
     * Does the same only when the session or the membership ends or the API key is deleted. The token may expire or
     * lose its signing key during a long download.
     */
    watchSession (actor: Actor, onEnd: () => void): () => void {
      if (!writers.isOurs(actor)) return () => {}
      const token = writers.tokenOf(actor)
      return watchWhile(() => sessions.existsFor(token), token, onEnd)
    },

    /**
     * Ends everything that is watched and whose actor may not act any more. A node that receives notifications knows
     * who that is, any other one asks the database. Rejects with `DatabaseUnavailable`.
     */
    verifyWatched: (): Promise<void> => actorWatch.verifyAll(),

    /**
     * Checks again that the reader may act, because a read may have waited. Somebody without an account always may, and
     * so may an actor of another mount, which a hook of the host has set. Throws what `endOf` returns, and
     * `DatabaseUnavailable`.
     */
    async confirmReader (reader: Actor | null | undefined, client?: Client): Promise<void> {
      if (reader && !await isStillAllowed(reader, client)) throw await endOf(reader, client)
    },

    isStillAllowed,
    endOf,

    /**
     * Returns the error of an operation that has failed, which is that of `endOf` in place of another rejection if the
     * actor may not act any more (contract 1.12). A rejection says what exists, for example, and is then not for this
     * actor. A statement that was rejected says `InvalidToken`, whatever has ended. Rejects with `DatabaseUnavailable`.
     */
    rejectionOf<Failure extends Error & { statusCode?: number }> (
      error: Failure, actor: Actor | null | undefined, client?: Client
    ): Failure | FastifyError | Promise<Failure | FastifyError> {
      const { statusCode = 500 } = error
      if (error instanceof InvalidToken && actor?.organization && writers.isOurs(actor)) return endOf(actor, client)
      if (!actor || statusCode < 400 || statusCode === 401 || statusCode >= 500) return error
      const may = isStillAllowed(actor, client)
      const choose = async () => await may ? error : endOf(actor, client)
      return may === true ? error : choose()
    },

    authenticate,
    authenticateAny,
    authenticateSession,
    isOurs: writers.isOurs,
    actorOf,

    /**
     * Returns an `onRequest` hook that rejects an API key without an action, where the rule of the action is asked
     * later. It throws `ActionNotGranted` or `SessionRequired`.
     */
    requireGranted: (action: Action) => async (request: FastifyRequest): Promise<void> => {
      const actor = actorOf(request)
      if (!isGranted(actor, action)) throw denialOf(actor, action)
    },

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
        const authorize = async (request: FastifyRequest) =>
          callerOf(request).authorize(action, { ownerId: ownerOf?.(request) })
        return [authenticate, authorize]
      }
      const authorize = async (request: FastifyRequest) =>
        policy.authorize(actors.in(request), action, { ownerId: ownerOf?.(request) })
      return [...identifies(action, ...others), ...policy.isOpen(action) ? [] : [authorize]]
    },

    /**
     * A `preValidation` hook that checks the actor again when the body of the request is complete (contract 1.12). It
     * has no effect on requests without an actor or a body, nor on an actor of another mount, which a hook of the host
     * has set.
     */
    reconfirm (request: FastifyRequest, _: FastifyReply, done: (error?: Error) => void): void {
      const { raw, socket } = request
      const actor = actors.in(request)
      const may = !actor || !hasBody(raw) || isStillAllowed(actor, socket)
      if (may === true) return done()
      Promise.resolve(may).then(async (may) => { if (!may) throw await endOf(actor!, socket) }).then(() => done(), done)
    },
  }
}

function tokenOf (authorization: string | undefined): string {
  const [scheme, ...words] = authorization?.split(/ +/) ?? []
  if (scheme?.toLowerCase() !== 'bearer') throw new Unauthenticated()
  if (words.length !== 1) throw new InvalidToken()
  return words[0]!
}
