import type { Options } from '../../schema/options.ts'

/** The name of the session cookie. */
export const SESSION_COOKIE = 'usher_session'

/**
 * Returns the attributes of the session cookie, which only the auth routes receive (contract 4).
 * @param protocol that of the request. It is `http` behind a proxy that terminates TLS and is not trusted
 */
export function attributesOf ({ prefix, publicUrl }: Pick<Options, 'prefix' | 'publicUrl'>, protocol: string | undefined, expires: Date) {
  const secure = publicUrl?.startsWith('https:') === true || protocol === 'https'
  return { path: `${prefix}/api/auth`, httpOnly: true, sameSite: 'lax', secure, expires } as const
}
