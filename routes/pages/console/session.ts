import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { requireLiveSession } from '../../../db/access/live-sessions.ts'
import type { CookieSession } from '../../../plugins/access/sessions.ts'
import { createOriginCheck } from '../../../schema/http/origin.ts'
import { SecondFactorMissing } from '../../../schema/sign-in/second-factor.ts'
import { OriginNotAllowed } from '../../../schema/http/errors.ts'
import type { Actor } from '../../../schema/options/policy.ts'
import { createConsoleCookie, createSessionCookie } from '../../access/cookies.ts'
import { isAtOwnHost } from '../../http/allowed-origins.ts'

export type ConsoleSessions = Awaited<ReturnType<typeof createConsoleSessions>>

/** Opens, finds and ends the sessions of the console (contract 18.3). */
export async function createConsoleSessions (app: FastifyInstance) {
  const {
    usherAudit: audit, usherOptions: options,
    usherAccess: { actors, callerOf, claims, identify, policy, sessions, tokens },
    usherSignIn: { login, secondFactor, stepUp },
  } = app
  const cookies = await createConsoleCookie(app)
  const browserCookies = await createSessionCookie(app)
  const isPublicOrigin = createOriginCheck(options.publicUrl ? [new URL(options.publicUrl).origin] : [])

  const mayOpen = (actor: Actor): boolean => policy.allows(actor, 'console:open') && !secondFactor.isMissing(actor)

  async function actorOf ({ sessionId, user, amr, authTime, expiresAt }: CookieSession): Promise<Actor> {
    const { id, role } = user
    const seconds = Math.floor(authTime.getTime() / 1000)
    return tokens.actorOf({ id, role, sessionId, amr, authTime: seconds, claims: await claims.of(user) }, { expiresAt })
  }

  return {
    /** Returns the actor and the user of the session of the console that the browser has, or undefined without one. */
    async find (request: FastifyRequest): Promise<Pick<CookieSession, 'user' | 'expiresAt'> & { actor: Actor } | undefined> {
      const cookie = cookies.read(request)
      const found = cookie && await sessions.findConsole(cookie)
      return found && { actor: await actorOf(found), user: found.user, expiresAt: found.expiresAt }
    },

    mayOpen,

    /** Returns the session with which the browser can open the console, or undefined. Only the auth routes know it. */
    async findParent (request: FastifyRequest): Promise<CookieSession | undefined> {
      const cookie = browserCookies.read(request)
      return cookie && sessions.find(cookie)
    },

    /** Returns whether a request has a token of somebody who may not open the console. */
    async isForeign (request: FastifyRequest): Promise<boolean> {
      const { headers: { authorization }, socket } = request
      if (authorization === undefined) return false
      return identify(authorization, socket).then((actor) => !mayOpen(actor), () => false)
    },

    /**
     * Starts a session of the console with another session, whose user must have been authenticated recently (contract
     * 16.2), and with which it ends. Throws `Forbidden` for whoever may not open the console, `SecondFactorMissing`,
     * `StepUpRequired`, `SecondFactorRequired`, `InvalidToken` or `InvalidCredentials` if the session or the user is
     * gone by now, and what a hook of the host throws.
     */
    async open (request: FastifyRequest, reply: FastifyReply, parent: CookieSession): Promise<void> {
      const { sessionId, user, amr, authTime } = parent
      const actor = await actorOf(parent)
      actors.set(request, actor)
      const caller = callerOf(request)
      caller.authorize('console:open')
      await stepUp.require(caller)
      // After the step-up, which asks a user who has a second factor for it.
      if (secondFactor.isMissing(actor)) throw new SecondFactorMissing()
      const { cookie, expiresAt } = await login.start(caller, user, {
        amr,
        authTime,
        isConsole: true,
        parentId: sessionId,
        // A repair of the account, for which this may have waited, has ended the session that permits it.
        inTransaction: (trx) => requireLiveSession(trx, { id: sessionId }),
      })
      cookies.set(reply, cookie, expiresAt)
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
