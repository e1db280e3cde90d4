import type { FastifyInstance, FastifyRequest } from 'fastify'
import { createAllowedOrigins } from './allowed-origins.ts'
import { createCookie } from './cookie.ts'
import { readSessionCookie, type SessionCookie } from '../plugins/auth/cookie-value.ts'
import { SESSION_COOKIE } from '../plugins/auth/session-cookie.ts'

export type Cookies = Awaited<ReturnType<typeof createCookies>>

/** Returns functions that read, set and clear the session cookie, which only the auth routes receive (contract 4). */
export async function createCookies (app: FastifyInstance) {
  const { valuesIn, set, clear } = await createCookie(app, SESSION_COOKIE)

  return {
    /** Returns whether a request has a session cookie, valid or not. */
    isSent: (request: FastifyRequest): boolean => [...valuesIn(request)].some((value) => value !== ''),

    /** Returns the parsed session cookie, or `undefined` if it is missing, malformed or sent with several values. */
    read (request: FastifyRequest): SessionCookie | undefined {
      // A sibling domain can set a second cookie of this name, and their order does not tell which one is genuine.
      const [value = '', ...others] = valuesIn(request)
      return others.length > 0 ? undefined : readSessionCookie(value)
    },

    /** Returns the parsed session cookies, whichever is genuine: at most four, because each costs a statement to end. */
    readAll: (request: FastifyRequest): SessionCookie[] =>
      [...valuesIn(request)].map(readSessionCookie).filter((cookie) => cookie !== undefined).slice(0, 4),

    /** Returns whether the origin of a request may use the cookie. */
    serves: createAllowedOrigins(app).serveCookie,

    set,
    clear,
  }
}
