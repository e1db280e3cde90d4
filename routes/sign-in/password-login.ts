import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { LoggedIn } from '../../plugins/sign-in/login.ts'
import type { Login } from '../../schema/sign-in/login.ts'
import type { Cookies } from '../access/cookies.ts'

/** Returns the login by address and password, which the API and the page share (contract 4.1, 15.2). */
export function createLogIn (
  {
    usherAccess: { callerOf, policy }, usherSignIn: { login }, usherThrottle: throttle, usherOptions: { organizations },
  }: FastifyInstance,
  cookies: Cookies
) {
  return {
    /** Returns the body of a response with a new token. */
    show ({ token, expiresAt, user, actor }: Pick<LoggedIn, 'token' | 'expiresAt' | 'user' | 'actor'>) {
      const shown = policy.viewOf(actor, user.id).show(user)
      const reply = { token, tokenType: 'Bearer', expiresIn: login.secondsLeft(expiresAt), user: shown }
      return organizations ? { ...reply, organization: actor.organization } : reply
    },

    /**
     * An `onRequest` hook that rejects logins from a network that floods the node, before the body of the request is
     * read.
     */
    async rejectFlood ({ ip: address, socket: client }: FastifyRequest): Promise<void> {
      await throttle.rejectFlood({ address, client })
    },

    /**
     * Logs a user in, and sets the session cookie. Throws `InvalidCredentials`, `TooManyRequests`, and what a hook of
     * the host throws.
     */
    async logIn (request: FastifyRequest, reply: FastifyReply, credentials: Login): Promise<LoggedIn> {
      // The login ends the session of the cookie that the browser has. Only pages of allowed origins may cause that.
      const replaced = cookies.serves(request) ? cookies.read(request) : undefined
      const loggedIn = await login.withPassword(callerOf(request, { actor: null }), { ...credentials, replaced })
      cookies.set(reply, loggedIn.cookie, loggedIn.expiresAt)
      return loggedIn
    },
  }
}
