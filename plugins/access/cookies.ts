import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Options } from '../../schema/options/options.ts'

/** The name of the session cookie. */
export const SESSION_COOKIE = 'usher_session'

/** The name of the cookie of a session of the console (contract 18.3). */
export const CONSOLE_COOKIE = 'usher_console'

/** The name of the cookie with which a browser proves that it has sent a sign-up (contract 11.2). */
export const SIGN_UP_COOKIE = 'usher_sign_up'

/** The name of the cookie with which a browser proves that it has asked for a mail to log in (contract 16.6). */
export const LOGIN_MAIL_COOKIE = 'usher_login_mail'

/** The name of the cookie by which a login by passkey belongs to the browser that has begun it. */
export const CEREMONY_COOKIE = 'usher_passkey'

/** The name of the cookie by which a login at a provider belongs to the browser that has begun it. */
export const PROVIDER_COOKIE = 'usher_provider'

/**
 * The name of the cookie with the challenge of a login that has begun at a provider, for the page that completes it.
 */
export const CHALLENGE_COOKIE = 'usher_challenge'

/** The name of the cookie in which a browser keeps where its user wants to go, until a link in a mail is opened. */
export const RETURN_COOKIE = 'usher_return'

/**
 * Returns whether a request came by https, as far as is known.
 * @param protocol that of the request. It is `http` behind a proxy that terminates TLS and is not trusted. Fastify
 * leaves it in the case in which a proxy has sent it
 */
export const isHttps = (protocol: string | undefined): boolean => protocol?.toLowerCase() === 'https'

/**
 * Returns the attributes of the cookies, which only the auth routes receive (contract 4).
 * @param protocol that of the request
 * @param now the time by the clock of the database. Browsers prefer the remaining time to the date, which they compare
 * with their own clock, or correct by the header `Date`, which is by the clock of this machine
 */
export function attributesOf (
  { publicPath, publicUrl }: Pick<Options, 'publicPath' | 'publicUrl'>, protocol: string | undefined, expires: Date,
  now: number
) {
  const secure = publicUrl?.startsWith('https:') === true || isHttps(protocol)
  const maxAge = Math.max(0, Math.floor((expires.getTime() - now) / 1000))
  return { path: `${publicPath}/api/auth`, httpOnly: true, sameSite: 'lax', secure, expires, maxAge } as const
}

/**
 * The content of a session cookie: the session's id, a random secret of which only the hash is stored, the number of
 * rotations, and a signature of these three by the session's rotation key, which never leaves the database.
 *
 * The next cookie follows from the present one, so concurrent refreshes all get the same. An old cookie is recognised
 * whatever its age, without a stored history. An old cookie is not enough to make a newer one, since that takes the
 * rotation key, and the database is not enough to make any cookie, since that takes the secret.
 */
export interface SessionCookie {
  readonly id: string
  readonly secret: string
  readonly rotations: number
  readonly signature: string
}

/**
 * Returns the values of all cookies of a name in a `Cookie` header (RFC 6265 4.2). Names are compared as a whole and
 * with their case. The double quotes that a value may have are not part of it.
 */
export function readCookies (header: string, name: string): string[] {
  return header.split(';').flatMap((pair) => {
    const [, given, value] = /^[ \t]*([^=]*?)[ \t]*=[ \t]*(.*?)[ \t]*$/s.exec(pair) ?? []
    return given === name ? [/^"(.*)"$/s.exec(value!)?.[1] ?? value!] : []
  })
}

const format = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([\w-]{43})\.(0|[1-9]\d{0,8})\.([\w-]{43})$/

/** Parses the value of a cookie. Returns undefined if it does not have the format of a session cookie. */
export function readSessionCookie (value: string): SessionCookie | undefined {
  const match = format.exec(value) as [string, string, string, string, string] | null
  return match ? { id: match[1], secret: match[2], rotations: Number(match[3]), signature: match[4] } : undefined
}

/** Returns the value of a session's cookie after the given number of rotations. */
export function writeSessionCookie (
  { id, secret, rotations }: Omit<SessionCookie, 'signature'>, rotationKey: Uint8Array
): string {
  const signed = `${id}.${secret}.${rotations}`
  return `${signed}.${createHmac('sha256', rotationKey).update(signed).digest('base64url')}`
}

/** Returns whether a cookie is the session's present one or one of its former ones. */
export function isGenuine (cookie: SessionCookie, rotationKey: Uint8Array): boolean {
  const genuine = readSessionCookie(writeSessionCookie(cookie, rotationKey))!
  return timingSafeEqual(Buffer.from(cookie.signature), Buffer.from(genuine.signature))
}

/** The parts of the cookie of a session of the console, which is never rotated. */
export type ConsoleCookie = Pick<SessionCookie, 'id' | 'secret'>

const consoleFormat = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([\w-]{43})$/

/** Parses the value of a cookie of the console. Returns undefined if it does not have that format. */
export function readConsoleCookie (value: string): ConsoleCookie | undefined {
  const match = consoleFormat.exec(value) as [string, string, string] | null
  return match ? { id: match[1], secret: match[2] } : undefined
}

/** Returns the value of the cookie of a session of the console. */
export const writeConsoleCookie = ({ id, secret }: ConsoleCookie): string => `${id}.${secret}`
