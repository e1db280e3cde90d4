import fastifyCookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createAllowedOrigins } from './allowed-origins.ts'
import { readSessionCookie, type SessionCookie } from '../plugins/auth/cookie-value.ts'
import { attributesOf, SESSION_COOKIE } from '../plugins/auth/session-cookie.ts'

/** Returns functions that read, set and clear the session cookie, which only the auth routes receive (contract 4). */
export async function createCookies (app: FastifyInstance) {
  // If the host has registered @fastify/cookie, that registration is used. Its options for hooks do not matter, because only
  // `parseCookie` and `serializeCookie` are called.
  if (!app.hasDecorator('parseCookie')) await app.register(fastifyCookie)

  function set (reply: FastifyReply, value: string, expires: Date): void {
    const attributes = attributesOf(app.usherOptions, reply.request.protocol, expires, app.usherDatabase.clock.now())
    reply.header('set-cookie', app.serializeCookie(SESSION_COOKIE, value, attributes))
  }

  return {
    /** Returns whether a request has a session cookie, valid or not. */
    isSent: ({ headers: { cookie = '' } }: FastifyRequest): boolean => Boolean(app.parseCookie(cookie)[SESSION_COOKIE]),

    /** Returns the parsed session cookie, or `undefined` if it is missing, malformed or sent more than once. */
    read ({ headers: { cookie = '' } }: FastifyRequest): SessionCookie | undefined {
      // A sibling domain can set a second cookie of this name, and their order does not tell which one is genuine.
      const several = cookie.split(`${SESSION_COOKIE}=`).length > 2
      return several ? undefined : readSessionCookie(app.parseCookie(cookie)[SESSION_COOKIE] ?? '')
    },

    /** Returns whether the origin of a request may use the cookie. */
    serves: createAllowedOrigins(app).serveCookie,

    set,
    clear: (reply: FastifyReply): void => set(reply, '', new Date(0)),
  }
}
