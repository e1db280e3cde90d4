import type { FastifyServerOptions, LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import type { UsherOptions } from '../../app.ts'
import type { AuthenticationResponse, CreationOptions, RequestOptions } from '../../schema/sign-in/passkeys.ts'
import { createUsher, sharedUsher, type LoggedIn, type TestUsher } from './app.ts'
import { Authenticator, type Algorithm, type Behaviour } from './authenticator.ts'

export const ORIGIN = 'https://example.com'

/** Returns the cookies of a response as a browser sends them. */
export const cookiesOf = (response: LightMyRequestResponse): string =>
  response.cookies.map(({ name, value }) => `${name}=${value}`).join('; ')

/** Mounts Usher with a public URL, and returns functions for ceremonies besides those of `createUsher`. */
export async function openPasskeys (t: Test, options: UsherOptions = {}, server?: FastifyServerOptions) {
  return withPasskeys(await createUsher(t, { publicUrl: ORIGIN, ...options }, server))
}

/** Returns the same for an app that tests share, as `sharedUsher` does. */
export async function sharedPasskeys (options: UsherOptions = {}) {
  return withPasskeys(await sharedUsher({ publicUrl: ORIGIN, ...options }))
}

/** Returns the same functions for an app whose public URL is `ORIGIN`. */
export function withPasskeys (usher: TestUsher) {
  const { inject } = usher

  async function creationOptions ({ headers }: Pick<LoggedIn, 'headers'>): Promise<CreationOptions> {
    const response = await inject('POST', '/api/auth/passkeys/options', { headers })
    if (response.statusCode !== 200) throw new Error(`options: ${response.statusCode} ${response.body}`)
    return response.json()
  }

  const add = (
    user: Pick<LoggedIn, 'headers'>, credential: object, rest: object = {}, headers: Record<string, string> = {}
  ) =>
    inject('POST', '/api/auth/passkeys', { headers: { ...user.headers, ...headers }, payload: { credential, ...rest } })

  /** Registers a passkey of a user. Returns it with the authenticator that has it. */
  async function register (
    user: LoggedIn, { origin = ORIGIN, ...behaviour }: Behaviour & { algorithm?: Algorithm } = {}
  ) {
    const authenticator = new Authenticator({ origin })
    const response = await add(user, authenticator.create(await creationOptions(user), behaviour))
    if (response.statusCode !== 201) throw new Error(`add: ${response.statusCode} ${response.body}`)
    return { authenticator, id: response.json().id as string }
  }

  /** Begins a login. Returns its options, and the cookie of the browser. */
  async function begin (cookie?: string): Promise<{ options: RequestOptions, cookie: string }> {
    const response = await inject(
      'POST', '/api/auth/login/passkey/options', { headers: cookie === undefined ? {} : { cookie } }
    )
    if (response.statusCode !== 200) throw new Error(`options: ${response.statusCode} ${response.body}`)
    return { options: response.json(), cookie: cookiesOf(response) }
  }

  const finish = (credential: AuthenticationResponse, cookie?: string) =>
    inject(
      'POST', '/api/auth/login/passkey', { headers: cookie === undefined ? {} : { cookie }, payload: { credential } }
    )

  async function logIn (authenticator: Authenticator, behaviour?: Behaviour) {
    const { options, cookie } = await begin()
    return finish(authenticator.get(options, behaviour), cookie)
  }

  return { ...usher, creationOptions, add, register, begin, finish, logIn }
}
