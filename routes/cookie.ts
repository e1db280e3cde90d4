import fastifyCookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { readCookies } from '../plugins/auth/cookie-value.ts'
import { attributesOf } from '../plugins/auth/session-cookie.ts'

/**
 * Returns functions that read, set and clear a cookie, which only the auth routes receive (contract 4).
 * @param folder which other routes receive it instead
 */
export async function createCookie (app: FastifyInstance, name: string, folder = 'api/auth') {
  // If the host has registered @fastify/cookie, that registration is used. Its options for hooks do not matter, because
  // only `serializeCookie` is called.
  if (!app.hasDecorator('serializeCookie')) await app.register(fastifyCookie)

  function set (reply: FastifyReply, value: string, expires: Date): void {
    const { usherOptions: options, usherDatabase: { clock } } = app
    const attributes = {
      ...attributesOf(options, reply.request.protocol, expires, clock.now()), path: `${options.publicPath}/${folder}`,
    }
    reply.header('set-cookie', app.serializeCookie(name, value, attributes))
  }

  return {
    /**
     * Returns the different values that a request has for the cookie. Not by `parseCookie`, which returns one of
     * several cookies of a name, and which the host may have set up to decode values otherwise.
     */
    valuesIn: ({ headers: { cookie = '' } }: FastifyRequest): ReadonlySet<string> => new Set(readCookies(cookie, name)),

    set,
    clear: (reply: FastifyReply): void => set(reply, '', new Date(0)),
  }
}
