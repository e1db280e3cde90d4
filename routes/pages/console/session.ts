import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { requireLiveSession } from '../../../db/access/live-sessions.ts'
import { createConsoleCookie } from '../../access/cookies.ts'
import type { LoggedIn, ToConsole } from '../../../plugins/sign-in/login.ts'
import { createOriginCheck } from '../../../schema/http/origin.ts'
import { InvalidToken } from '../../../schema/sign-in/login.ts'
import { NotFound, OriginNotAllowed } from '../../../schema/http/errors.ts'
import type { Actor } from '../../../schema/options/policy.ts'
import { isAtOwnHost } from '../../http/allowed-origins.ts'

export type ConsoleSessions = Awaited<ReturnType<typeof createConsoleSessions>>

/** Starts, finds and ends the sessions of the console (contract 18.3). */
export async function createConsoleSessions (app: FastifyInstance) {
  const {
    usherAudit: audit, usherOptions: options, usherUsers: users,
    usherAccess: { actors, callerOf, claims, identify, policy, sessions, tokens },
    usherSignIn: { login, secondFactor, stepUp, totp },
  } = app
  const cookies = await createConsoleCookie(app)
  const isPublicOrigin = createOriginCheck(options.publicUrl ? [new URL(options.publicUrl).origin] : [])

  const mayOpen = (actor: Actor): boolean => policy.allows(actor, 'console:open') && !secondFactor.isMissing(actor)

  const toConsole: ToConsole = {
    // The session will exist, and no key does.
    admits: (user) => mayOpen({ ...user, sessionId: '', keyId: null, actions: null }),
  }

  function open (reply: FastifyReply, { cookie, expiresAt }: LoggedIn): void {
    cookies.set(reply, cookie, expiresAt)
  }

  return {
    /** Returns the actor of the session of the browser, or undefined without one. */
    async find (request: FastifyRequest): Promise<{ actor: Actor, expiresAt: Date } | undefined> {
      const cookie = cookies.read(request)
      const found = cookie && await sessions.findConsole(cookie)
      if (!found) return undefined
      const { user, expiresAt, amr, authTime } = found
      const actor = tokens.actorOf({
        id: user.id,
        role: user.role,
        sessionId: cookie.id,
        amr,
        authTime: Math.floor(authTime.getTime() / 1000),
        claims: await claims.of(user),
      }, { expiresAt })
      return { actor, expiresAt }
    },

    mayOpen,

    /** Returns whether a request has a token of somebody who may not open the console. */
    async isForeign (request: FastifyRequest): Promise<boolean> {
      const { headers: { authorization }, socket } = request
      if (authorization === undefined) return false
      return identify(authorization, socket).then((actor) => !mayOpen(actor), () => false)
    },

    /**
     * Logs an admin in by address and password. Throws `InvalidCredentials`, also for the right password of anybody
     * else, `SecondFactorRequired`, `TooManyRequests`, and what a hook of the host throws.
     */
    async logIn (request: FastifyRequest, reply: FastifyReply, given: { email: string, password: string }) {
      const caller = callerOf(request, { actor: null })
      open(reply, await login.withPassword(caller, { ...given, replaced: cookies.read(request), toConsole }))
    },

    /** Completes a login by the second factor. */
    async completeLogin (
      request: FastifyRequest, reply: FastifyReply, challenge: string,
      factor: { code: string } | { recoveryCode: string }
    ) {
      const caller = callerOf(request, { actor: null })
      const given = { challenge, replaced: cookies.read(request), toConsole }
      open(reply, await login.withSecondFactor(caller, given, (userId) => totp.prove(caller, userId, factor)))
    },

    /**
     * Starts a session of the console for the user of a token who was authenticated recently (contract 16.2). It ends
     * with the session of the token. Throws `StepUpRequired`, `InvalidToken`, `NotFound` for whoever may not open the
     * console.
     */
    async exchange (request: FastifyRequest, reply: FastifyReply) {
      const actor = await identify(request.headers.authorization, request.socket)
      if (!mayOpen(actor)) throw new NotFound()
      actors.set(request, actor)
      const caller = callerOf(request)
      await stepUp.require(caller)
      const user = await users.getOwn(caller)
      if (!user) throw new InvalidToken()
      open(reply, await login.start(caller, user, {
        amr: actor.amr,
        authTime: new Date(actor.authTime * 1000),
        replaced: cookies.read(request),
        toConsole,
        parentId: caller.getSession().sessionId,
        // A repair of the account, for which this may have waited, has ended the session that permits it.
        inTransaction: (trx) => requireLiveSession(trx, actor.sessionId),
      }))
    },

    /** Ends the session of the actor, and clears the cookie. */
    async end (request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const caller = callerOf(request)
      const { sessionId } = caller.getSession()
      await sessions.end({ id: sessionId }, { ...audit.contextOf(caller), action: 'logout', byUser: true })
      cookies.clear(reply)
    },

    /**
     * An `onRequest` hook that accepts only requests of pages of the same origin. Unlike for other pages, those of the
     * option `origins` do not suffice: they may act for users, but not for admins.
     */
    async requireOwnOrigin (request: FastifyRequest): Promise<void> {
      const { headers: { origin, 'sec-fetch-site': site }, protocol } = request
      const isOwn = site !== undefined
        ? site === 'same-origin'
        : origin !== undefined && (isAtOwnHost(request, protocol, origin) || isPublicOrigin(origin))
      if (!isOwn) throw new OriginNotAllowed()
    },
  }
}
