import fastifyCookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createAllowedOrigins } from './allowed-origins.ts'
import { readSessionCookie, type SessionCookie } from '../plugins/auth/cookie-value.ts'

const COOKIE = 'usher_session'

/** The session cookie as it comes and goes: for the auth routes only, and for the origins that it serves (contract 4). */
export async function createCookies (app: FastifyInstance) {
  const { prefix, publicUrl } = app.usherOptions
  const path = `${prefix}/api/auth`
  // Behind a proxy that is not trusted, a request over TLS looks like one without.
  const isPublicSecure = publicUrl?.startsWith('https:') === true

  // The host's own @fastify/cookie serves as well, whatever its hook: only its two functions are used.
  if (!app.hasDecorator('parseCookie')) await app.register(fastifyCookie)

  function set (reply: FastifyReply, value: string, expires: Date): void {
    const secure = isPublicSecure || reply.request.protocol === 'https'
    reply.header('set-cookie', app.serializeCookie(COOKIE, value, { path, httpOnly: true, sameSite: 'lax', secure, expires }))
  }

  return {
    /** Whether a request has one, of whatever kind. */
    isSent: ({ headers: { cookie = '' } }: FastifyRequest): boolean => Boolean(app.parseCookie(cookie)[COOKIE]),

    /** What a request's cookie says; `undefined` where there is none, or none of ours, or several. */
    read ({ headers: { cookie = '' } }: FastifyRequest): SessionCookie | undefined {
      // A neighbouring domain can plant one beside the real one, and the order does not tell which is which.
      const several = cookie.split(`${COOKIE}=`).length > 2
      return several ? undefined : readSessionCookie(app.parseCookie(cookie)[COOKIE] ?? '')
    },

    /** Whether it serves where a request comes from. */
    serves: createAllowedOrigins(app).serveCookie,

    set,
    clear: (reply: FastifyReply): void => set(reply, '', new Date(0)),
  }
}
