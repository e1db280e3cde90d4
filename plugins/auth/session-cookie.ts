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
