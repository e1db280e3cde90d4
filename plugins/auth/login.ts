import { fastifyCookie } from '@fastify/cookie'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { InvalidCredentials } from '../../schema/auth.ts'
import { Forbidden } from '../../schema/errors.ts'
import { UserDisabled } from '../../schema/user.ts'
import type { StartedSession } from '../../schema/usher.ts'
import type { Caller } from './caller.ts'
import { attributesOf, SESSION_COOKIE } from './session-cookie.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherLogins: ReturnType<typeof createLogins>
  }
}

function createLogins (app: FastifyInstance) {
  const { usherDatabase: { clock }, usherUsers: users, usherSessions: sessions, usherTokens: tokens } = app
  const { usherHooks: hooks, usherClaims: claims, usherOptions } = app

  return {
    /**
     * Starts a session for a user whom the host has authenticated, without a password. Throws `Forbidden` for anyone but the host,
     * `UserNotFound`, `UserDisabled`.
     * @param protocol that of the request for which the session is started, if there is one
     */
    async start (caller: Caller, userId: string, protocol: string | undefined): Promise<StartedSession> {
      if (!caller.isHost) throw new Forbidden()
      const user = await users.get(userId)
      if (user.disabled) throw new UserDisabled()
      await hooks.check('beforeLogin', user, caller)
      // Before the session, so that there is none if the host's function fails.
      const added = await claims.of(user)
      const { address, userAgent } = caller
      const { id, role, cookie, expiresAt } = await sessions.start({ userId: user.id, address, userAgent }).catch(async (error) => {
        if (!(error instanceof InvalidCredentials)) throw error
        // The user was deleted or disabled meanwhile.
        await users.get(userId)
        throw new UserDisabled()
      })
      return {
        token: tokens.sign({ id: user.id, role, sessionId: id, claims: role === user.role ? added : await claims.of({ ...user, role }) }, { expiresAt }),
        cookie: fastifyCookie.serialize(
          SESSION_COOKIE, cookie, attributesOf(usherOptions, protocol, expiresAt, clock.now())
        ),
        expiresAt,
      }
    },
  }
}

/** Logs users in whom the host has authenticated (contract 12.1). */
export default fp(async function logins (app) {
  app.decorate('usherLogins', createLogins(app))
}, {
  name: 'usher-logins',
  dependencies: [
    'usher-database', 'usher-users', 'usher-sessions', 'usher-tokens', 'usher-auth', 'usher-hooks', 'usher-claims',
  ],
})
