import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LOGIN_MAIL_COOKIE } from '../plugins/auth/session-cookie.ts'
import { LOGIN_MAIL_SECONDS } from '../schema/auth/login-mail.ts'
import { createAllowedOrigins } from './allowed-origins.ts'
import { createCookie } from './cookie.ts'

// A browser may have asked several times, and either code works.
const SECRETS = 3
const MAX_SECRETS = 2 * SECRETS

/** Returns functions that read and add to the cookie of the browser that has asked for mails (contract 16.6). */
export async function createLoginMailCookie (app: FastifyInstance) {
  const { valuesIn, set } = await createCookie(app, LOGIN_MAIL_COOKIE)
  // A page of another origin must not log a browser in.
  const { serveMailCookie: serves } = createAllowedOrigins(app)

  /**
   * Returns the secrets in the cookie, newest first. A sibling domain can set a second cookie, and only the code tells
   * which one is genuine.
   */
  function read (request: FastifyRequest): string[] {
    if (!serves(request)) return []
    return [...valuesIn(request)].flatMap((value) => value.split('.', SECRETS))
      .filter((secret) => /^[\w-]{43}$/.test(secret)).slice(0, MAX_SECRETS)
  }

  return {
    read,

    /** Adds a secret for as long as its code works, unless the origin of the request may not use the cookie. */
    add (reply: FastifyReply, secret: string): void {
      const { request } = reply
      if (!serves(request)) return
      const secrets = [secret, ...read(request)].slice(0, SECRETS)
      set(reply, secrets.join('.'), new Date(app.usherDatabase.clock.now() + LOGIN_MAIL_SECONDS * 1000))
    },
  }
}
