import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createAllowedOrigins } from './allowed-origins.ts'
import { createCookie } from './cookie.ts'
import { readSessionCookie, type SessionCookie } from '../plugins/auth/cookie-value.ts'
import { CEREMONY_COOKIE, PROVIDER_COOKIE, SESSION_COOKIE } from '../plugins/auth/session-cookie.ts'

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

    /**
     * Returns the parsed session cookies, whichever is genuine: at most four, because each costs a statement to end.
     */
    readAll: (request: FastifyRequest): SessionCookie[] =>
      [...valuesIn(request)].map(readSessionCookie).filter((cookie) => cookie !== undefined).slice(0, 4),

    /** Returns whether the origin of a request may use the cookie. */
    serves: createAllowedOrigins(app).serveCookie,

    set,
    clear,
  }
}

/**
 * Returns functions that read and set the cookie by which a login by passkey belongs to the browser that has begun it.
 */
export const createCeremonyCookies = (app: FastifyInstance) => createBrowserCookies(app, CEREMONY_COOKIE)

/** Returns the same functions for logins at providers. */
export const createProviderCookies = (app: FastifyInstance) => createBrowserCookies(app, PROVIDER_COOKIE)

async function createBrowserCookies (app: FastifyInstance, name: string) {
  const { valuesIn, set } = await createCookie(app, name)

  return {
    /**
     * Returns the secrets of the browser. A sibling domain can set a second cookie, and only the challenge or the state
     * tells which one is genuine.
     */
    read: (request: FastifyRequest): string[] =>
      [...valuesIn(request)].filter((value) => /^[\w-]{43}$/.test(value)).slice(0, 4),

    set: (reply: FastifyReply, value: string, seconds: number): void =>
      set(reply, value, new Date(app.usherDatabase.clock.now() + seconds * 1000)),
  }
}
