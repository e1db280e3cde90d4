import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { RETURN_COOKIE } from '../../plugins/auth/session-cookie.ts'
import { createCookie } from '../cookie.ts'

// As long as the links that mails contain.
const LIFETIME_MS = 86_400_000

/**
 * Returns functions that read and set the cookie in which a browser keeps where the user wants to go, until a link in a
 * mail is opened. The mail itself must not have it: anybody could make the service send a text of theirs (contract
 * 15.2). What is read may be anything, and must be checked like the parameter `returnTo`.
 */
export async function createReturnCookie (app: FastifyInstance) {
  const { valuesIn, set, clear } = await createCookie(app, RETURN_COOKIE, '')

  return {
    read (request: FastifyRequest): string | undefined {
      // A sibling domain can set a second cookie, and nothing tells which one is genuine.
      const [value, ...others] = valuesIn(request)
      if (value === undefined || others.length > 0) return undefined
      return Buffer.from(value, 'base64url').toString()
    },

    /** Keeps an address that was checked, or forgets the former one. */
    set (reply: FastifyReply, returnTo: string | undefined): void {
      if (returnTo !== undefined) {
        const expires = new Date(app.usherDatabase.clock.now() + LIFETIME_MS)
        set(reply, Buffer.from(returnTo).toString('base64url'), expires)
      } else if (valuesIn(reply.request).size > 0) clear(reply)
    },
  }
}
