import fastifyCookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { linkKinds } from '../../db/mail-links/kinds.ts'
import {
  attributesOf, CEREMONY_COOKIE, CHALLENGE_COOKIE, CONSOLE_COOKIE, isHttps, LOGIN_MAIL_COOKIE, PROVIDER_COOKIE,
  readConsoleCookie, readCookies, readSessionCookie, RETURN_COOKIE, SESSION_COOKIE, SIGN_UP_COOKIE, type ConsoleCookie,
  type SessionCookie,
} from '../../plugins/access/cookies.ts'
import { CHALLENGE_SECONDS } from '../../plugins/sign-in/second-factor.ts'
import { createAllowedOrigins } from '../http/allowed-origins.ts'

const DROPPED = 'A cookie with Secure was set over http, so the browser drops it and nobody stays logged in, unless a ' +
  'proxy in front has https. Open the address in publicUrl (PUBLIC_URL of a node), or give it the one that you open'
// A browser keeps such a cookie of its own machine.
const OWN_MACHINE = /^(localhost|.*\.localhost|127(\.\d+){3}|\[?::1\]?)$/i

const warned = new WeakSet<object>()

/** Warns once if a browser will drop the cookie of a response: `publicUrl` has https, and the request has not. */
function warnIfDropped ({ usherOptions }: FastifyInstance, { request }: FastifyReply): void {
  const { protocol, hostname, headers: { 'x-forwarded-proto': forwarded = '', origin, host }, log } = request
  if (!usherOptions.publicUrl?.startsWith('https:') || isHttps(protocol) || warned.has(usherOptions)) return
  // The header of a proxy that is not trusted, and the page that has sent the request, tell it, too.
  if (/https/i.test(`${forwarded}`) || origin?.startsWith('https:') || OWN_MACHINE.test(hostname)) return
  warned.add(usherOptions)
  log.warn({ host, publicUrl: usherOptions.publicUrl }, DROPPED)
}

/**
 * Returns functions that read, set and clear a cookie, which only the auth routes receive (contract 4).
 * @param options.folder which other routes receive it instead
 */
async function createCookie (
  app: FastifyInstance, name: string,
  { folder = 'api/auth', sameSite = 'lax' }: { folder?: string, sameSite?: 'lax' | 'strict' } = {}
) {
  const { usherOptions: options, usherDatabase: { clock } } = app
  // If the host has registered @fastify/cookie, that registration is used. Its options for hooks do not matter, because
  // only `serializeCookie` is called.
  if (!app.hasDecorator('serializeCookie')) await app.register(fastifyCookie)

  /**
   * Returns the different values that a request has for the cookie. Not by `parseCookie`, which returns one of several
   * cookies of a name, and which the host may have set up to decode values otherwise.
   */
  const valuesIn = ({ headers: { cookie = '' } }: FastifyRequest): ReadonlySet<string> =>
    new Set(readCookies(cookie, name))

  function set (reply: FastifyReply, value: string, expires: Date): void {
    const attributes = {
      ...attributesOf(options, reply.request.protocol, expires, clock.now()),
      path: `${options.publicPath}/${folder}`,
      sameSite,
    }
    if (value !== '') warnIfDropped(app, reply)
    reply.header('set-cookie', app.serializeCookie(name, value, attributes))
  }

  return {
    valuesIn,

    /** Returns the value of the cookie, or undefined if it is missing or sent with several values. */
    valueIn (request: FastifyRequest): string | undefined {
      // A sibling domain can set a second cookie of this name, and their order does not tell which one is genuine.
      const [value, ...others] = valuesIn(request)
      return others.length > 0 ? undefined : value
    },

    set,
    setFor: (reply: FastifyReply, value: string, seconds: number): void =>
      set(reply, value, new Date(clock.now() + seconds * 1000)),
    clear: (reply: FastifyReply): void => set(reply, '', new Date(0)),
  }
}

export type Cookies = Awaited<ReturnType<typeof createSessionCookie>>

/** Returns functions that read, set and clear the session cookie, which only the auth routes receive (contract 4). */
export async function createSessionCookie (app: FastifyInstance) {
  const { valuesIn, valueIn, set, clear } = await createCookie(app, SESSION_COOKIE)

  return {
    /** Returns whether a request has a session cookie, valid or not. */
    isSent: (request: FastifyRequest): boolean => [...valuesIn(request)].some((value) => value !== ''),

    /** Returns the parsed session cookie, or `undefined` if it is missing, malformed or sent with several values. */
    read: (request: FastifyRequest): SessionCookie | undefined => readSessionCookie(valueIn(request) ?? ''),

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
export const createCeremonyCookie = (app: FastifyInstance) => createBrowserCookie(app, CEREMONY_COOKIE)

/** Returns the same functions for logins at providers. */
export const createProviderCookie = (app: FastifyInstance) => createBrowserCookie(app, PROVIDER_COOKIE)

async function createBrowserCookie (app: FastifyInstance, name: string) {
  const { valuesIn, setFor } = await createCookie(app, name)

  return {
    /**
     * Returns the secrets of the browser. A sibling domain can set a second cookie, and only the challenge or the state
     * tells which one is genuine.
     */
    read: (request: FastifyRequest): string[] =>
      [...valuesIn(request)].filter((value) => /^[\w-]{43}$/.test(value)).slice(0, 4),

    set: setFor,
  }
}

/**
 * Returns functions that read and set the cookie with the challenge of a login that waits for the second factor, which
 * only the pages of the login receive.
 */
export async function createChallengeCookie (app: FastifyInstance) {
  const { valuesIn, setFor } = await createCookie(app, CHALLENGE_COOKIE, { folder: 'login' })

  return {
    /** Returns a challenge with the names of its methods, or undefined. It may be anything that has that form. */
    read (request: FastifyRequest): { challenge: string, methods: string[] } | undefined {
      const [value = ''] = valuesIn(request)
      const [challenge, ...methods] = value.split('.')
      return challenge && /^[\w-]+(\.[a-z-]+)*$/.test(value) ? { challenge, methods } : undefined
    },

    set: (reply: FastifyReply, challenge: string, methods: readonly string[]): void =>
      setFor(reply, [challenge, ...methods].join('.'), CHALLENGE_SECONDS),
  }
}

export type SignUpCookie = Awaited<ReturnType<typeof createSignUpCookie>>

/** Returns functions that read, set and clear the cookie of the browser that has signed up (contract 11.2). */
export async function createSignUpCookie (app: FastifyInstance) {
  const { valuesIn, valueIn, setFor, clear } = await createCookie(app, SIGN_UP_COOKIE)
  // A page of another origin must not make a browser keep the password that the page has chosen.
  const { serveMailCookie: serves } = createAllowedOrigins(app)

  return {
    /** Returns the secret in the cookie, or undefined if it is missing or sent with several values. */
    read: (request: FastifyRequest): string | undefined => serves(request) ? valueIn(request) : undefined,

    /** Sets the cookie for as long as the sign-up is pending, unless the origin of the request may not use it. */
    set (reply: FastifyReply, secret: string): void {
      if (serves(reply.request)) setFor(reply, secret, linkKinds.signUp.seconds)
    },

    /** Removes the cookie from a browser that has sent it. */
    clear (reply: FastifyReply): void {
      if (serves(reply.request) && valuesIn(reply.request).size > 0) clear(reply)
    },
  }
}

// A browser may have asked several times, and either code works.
const SECRETS = 3
const MAX_SECRETS = 2 * SECRETS

/** Returns functions that read and add to the cookie of the browser that has asked for mails (contract 16.6). */
export async function createLoginMailCookie (app: FastifyInstance) {
  const { valuesIn, setFor } = await createCookie(app, LOGIN_MAIL_COOKIE)
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
      setFor(reply, secrets.join('.'), linkKinds.login.seconds)
    },
  }
}

/** Returns functions that read, set and clear the cookie of a session of the console (contract 18.3). */
export async function createConsoleCookie (app: FastifyInstance) {
  const { valueIn, set, clear } = await createCookie(app, CONSOLE_COOKIE, { folder: 'console', sameSite: 'strict' })

  return {
    /** Returns the parsed cookie, or undefined if it is missing, malformed or sent with several values. */
    read: (request: FastifyRequest): ConsoleCookie | undefined => readConsoleCookie(valueIn(request) ?? ''),

    set,
    clear,
  }
}

/**
 * Returns functions that read and set the cookie in which a browser keeps where the user wants to go, until a link in a
 * mail is opened. The mail itself must not have it: anybody could make the service send a text of theirs (contract
 * 15.2). What is read may be anything, and must be checked like the parameter `returnTo`.
 */
export async function createReturnCookie (app: FastifyInstance) {
  const { valuesIn, valueIn, setFor, clear } = await createCookie(app, RETURN_COOKIE, { folder: '' })

  return {
    read (request: FastifyRequest): string | undefined {
      const value = valueIn(request)
      return value === undefined ? undefined : Buffer.from(value, 'base64url').toString()
    },

    /** Keeps an address that was checked, or forgets the former one. */
    set (reply: FastifyReply, returnTo: string | undefined): void {
      if (returnTo !== undefined) setFor(reply, Buffer.from(returnTo).toString('base64url'), linkKinds.signUp.seconds)
      else if (valuesIn(reply.request).size > 0) clear(reply)
    },
  }
}
