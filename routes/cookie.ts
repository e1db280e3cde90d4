import fastifyCookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { readCookies } from '../plugins/auth/cookie-value.ts'
import { attributesOf, isHttps } from '../plugins/auth/session-cookie.ts'

const DROPPED = 'A cookie with Secure was set over http, so the browser drops it and nobody stays logged in, unless a ' +
  'proxy in front has https. Open the address in publicUrl (PUBLIC_URL of a node), or give it the one that you open'
// A browser keeps such a cookie of its own machine.
const OWN_MACHINE = /^(localhost|.*\.localhost|127(\.\d+){3}|\[?::1\]?)$/i

const warned = new WeakSet<object>()

/** Warns once if a browser will drop the cookie of a response: `publicUrl` has https, and the request has not. */
export function warnIfDropped ({ usherOptions }: FastifyInstance, { request }: FastifyReply): void {
  const { protocol, hostname, headers: { 'x-forwarded-proto': forwarded = '', origin, host }, log } = request
  if (!usherOptions.publicUrl?.startsWith('https:') || isHttps(protocol) || warned.has(usherOptions)) return
  // The header of a proxy that is not trusted, and the page that has sent the request, tell it, too.
  if (/https/i.test(`${forwarded}`) || origin?.startsWith('https:') || OWN_MACHINE.test(hostname)) return
  warned.add(usherOptions)
  log.warn({ host, publicUrl: usherOptions.publicUrl }, DROPPED)
}

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
    if (value !== '') warnIfDropped(app, reply)
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
