import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { SIGN_UP_COOKIE } from '../plugins/auth/session-cookie.ts'
import { LIFETIME_SECONDS } from '../plugins/auth/links/sign-ups.ts'
import { createAllowedOrigins } from './allowed-origins.ts'
import { createCookie } from './cookie.ts'

export type SignUpCookie = Awaited<ReturnType<typeof createSignUpCookie>>

/** Returns functions that read, set and clear the cookie of the browser that has signed up (contract 11.2). */
export async function createSignUpCookie (app: FastifyInstance) {
  const { valuesIn, set, clear } = await createCookie(app, SIGN_UP_COOKIE)
  // A page of another origin must not make a browser keep the password that the page has chosen.
  const { serveMailCookie: serves } = createAllowedOrigins(app)

  return {
    /** Returns the secret in the cookie, or undefined if it is missing or sent with several values. */
    read (request: FastifyRequest): string | undefined {
      // A sibling domain can set a second cookie of this name, and their order does not tell which one is genuine.
      const [value, ...others] = serves(request) ? valuesIn(request) : []
      return others.length > 0 ? undefined : value
    },

    /** Sets the cookie for as long as the sign-up is pending, unless the origin of the request may not use it. */
    set (reply: FastifyReply, secret: string): void {
      if (serves(reply.request)) set(reply, secret, new Date(app.usherDatabase.clock.now() + LIFETIME_SECONDS * 1000))
    },

    /** Removes the cookie from a browser that has sent it. */
    clear (reply: FastifyReply): void {
      if (serves(reply.request) && valuesIn(reply.request).size > 0) clear(reply)
    },
  }
}
