import fastifyCookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createAllowedOrigins } from './allowed-origins.ts'
import { readCookies, readSessionCookie, type SessionCookie } from '../plugins/auth/cookie-value.ts'
import { attributesOf, SESSION_COOKIE } from '../plugins/auth/session-cookie.ts'

export type Cookies = Awaited<ReturnType<typeof createCookies>>

/** Returns functions that read, set and clear the session cookie, which only the auth routes receive (contract 4). */
export async function createCookies (app: FastifyInstance) {
  // If the host has registered @fastify/cookie, that registration is used. Its options for hooks do not matter, because
  // only `serializeCookie` is called.
  if (!app.hasDecorator('serializeCookie')) await app.register(fastifyCookie)

  function set (reply: FastifyReply, value: string, expires: Date): void {
    const attributes = attributesOf(app.usherOptions, reply.request.protocol, expires, app.usherDatabase.clock.now())
    reply.header('set-cookie', app.serializeCookie(SESSION_COOKIE, value, attributes))
  }

  // Not by `parseCookie`, which returns one of several cookies of a name, and which the host may have set up to decode
  // values otherwise.
  const valuesIn = ({ headers: { cookie = '' } }: FastifyRequest) => new Set(readCookies(cookie, SESSION_COOKIE))

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
    clear: (reply: FastifyReply): void => set(reply, '', new Date(0)),
  }
}
