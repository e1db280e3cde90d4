import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { FastifyServerOptions, LightMyRequestResponse } from 'fastify'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK, type JWTPayload } from 'jose'
import type { Test } from 'tap'
import type { UsherOptions } from '../../app.ts'
import type { ProviderOptions } from '../../schema/options/providers.ts'
import { createUsher, type LoggedIn, type TestUsher } from './app.ts'
import { cookiesOf } from './passkeys.ts'

export const ORIGIN = 'https://example.com'

interface Key { kid: string, privateKey: CryptoKey, jwk: JWK }

/** What a provider does in place of what it should. */
export interface Misbehaviour {
  /** Replaces claims of the ID token; undefined removes one. */
  claims?: JWTPayload
  header?: Record<string, unknown>
  /** Returns the ID token in place of the signed one. */
  idToken?: (claims: JWTPayload) => string | Promise<string>
  /** Answers a request by itself. Returns whether it has. */
  answer?: (path: string, response: ServerResponse) => boolean
  metadata?: Record<string, unknown>
  /** Who logs in at `/authorize`. */
  user?: JWTPayload
}

/** An issuer of OpenID Connect that does what a test wants. */
export interface FakeProvider {
  readonly issuer: string
  readonly options: ProviderOptions
  misbehave (given: Misbehaviour): void
  rotateKeys (): Promise<void>
  /** Logs somebody in at the address to which Usher has sent the browser. Returns the query of the callback. */
  authorize (url: string, claims?: JWTPayload): Record<string, string>
  sign (claims: JWTPayload, header?: Record<string, unknown>): Promise<string>
  readonly jwks: JWK[]
  /** The paths of the requests. */
  readonly requests: string[]
}

async function createKey (): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const kid = randomUUID()
  return { kid, privateKey, jwk: { ...await exportJWK(publicKey), kid, alg: 'ES256', use: 'sig' } }
}

/** Starts a provider on this machine. */
export async function startProvider (t: Test): Promise<FakeProvider> {
  let key = await createKey()
  let behaviour: Misbehaviour = {}
  const jwks = [key.jwk]
  const requests: string[] = []
  const codes = new Map<string, { challenge: string, redirectUri: string, claims: JWTPayload }>()
  const server = createServer((request, response) => {
    handle(request, response).catch((error) => response.destroy(error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const sign = (claims: JWTPayload, header: Record<string, unknown> = {}) =>
    new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: key.kid, ...header }).sign(key.privateKey)

  async function handle (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url!, issuer)
    requests.push(pathname)
    if (behaviour.answer?.(pathname, response)) return
    const send = (body: unknown, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (pathname === '/.well-known/openid-configuration') {
      send({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['ES256', 'RS256', 'HS256', 'none'],
        authorization_response_iss_parameter_supported: true,
        ...behaviour.metadata,
      })
    } else if (pathname === '/authorize') {
      const query = authorize(`${issuer}${request.url}`, behaviour.user)
      const to = new URL(request.url!, issuer).searchParams.get('redirect_uri')!
      if (!request.url!.includes('response_mode=form_post')) {
        response.writeHead(302, { location: `${to}?${new URLSearchParams(query)}` }).end()
        return
      }
      const fields = Object.entries(query).map(([name, value]) => `<input name="${name}" value="${value}">`)
      response.writeHead(200, { 'content-type': 'text/html' })
        .end(`<form method="post" action="${to}">${fields.join('')}</form><script>document.forms[0].submit()</script>`)
    } else if (pathname === '/jwks') {
      send({ keys: jwks })
    } else if (pathname === '/token') {
      const form = new URLSearchParams(await text(request))
      const found = codes.get(form.get('code') ?? '')
      codes.delete(form.get('code') ?? '')
      const challenge = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url')
      if (!found || found.challenge !== challenge || found.redirectUri !== form.get('redirect_uri')) {
        send({ error: 'invalid_grant' }, 400)
        return
      }
      const claims = { ...found.claims, ...behaviour.claims }
      send({
        access_token: `access-${randomUUID()}`,
        refresh_token: `refresh-${randomUUID()}`,
        token_type: 'Bearer',
        expires_in: 3600,
        id_token: await behaviour.idToken?.(claims) ?? await sign(claims, behaviour.header),
      })
    } else {
      send({ error: 'not_found' }, 404)
    }
  }

  function authorize (url: string, claims: JWTPayload = {}): Record<string, string> {
    const parameters = new URL(url).searchParams
    const code = randomUUID()
    const now = Math.floor(Date.now() / 1000)
    codes.set(code, {
      challenge: parameters.get('code_challenge')!,
      redirectUri: parameters.get('redirect_uri')!,
      claims: {
        iss: issuer, aud: 'usher', sub: 'ada', iat: now, exp: now + 300, nonce: parameters.get('nonce')!, ...claims,
      },
    })
    return { code, state: parameters.get('state')!, iss: issuer }
  }

  return {
    issuer,
    options: { issuer, clientId: 'usher', clientSecret: 'a secret', name: 'Fake', trustEmail: true, allowPrivateAddresses: true },
    misbehave: (given) => { behaviour = given },
    async rotateKeys () {
      key = await createKey()
      jwks.splice(0, jwks.length, key.jwk)
    },
    authorize,
    sign,
    jwks,
    requests,
  }
}

/** Mounts Usher with providers, and returns functions for logins at them besides those of `createUsher`. */
export async function openProviders (t: Test, options: UsherOptions, server?: FastifyServerOptions) {
  return withProviders(await createUsher(t, { publicUrl: ORIGIN, ...options }, server))
}

/** A login that has begun: where the browser was sent, and its cookies. */
export interface Begun { url: string, cookie: string }

/** Returns the same functions for an app. */
export function withProviders (usher: TestUsher) {
  const { inject } = usher

  /** Begins a login in a browser. */
  async function begin (id: string, { cookie, returnTo }: { cookie?: string, returnTo?: string } = {}): Promise<Begun> {
    const query = returnTo === undefined ? '' : `?${new URLSearchParams({ returnTo })}`
    const response = await inject(
      'GET', `/api/auth/providers/${id}/start${query}`, { headers: cookie === undefined ? {} : { cookie } }
    )
    if (response.statusCode !== 303) throw new Error(`start: ${response.statusCode} ${response.body}`)
    return { url: response.headers.location!, cookie: cookiesOf(response) }
  }

  /** Begins what only a user can. */
  async function beginFor (
    { headers }: Pick<LoggedIn, 'headers'>, what: 'link' | 'step-up', id: string, returnTo?: string
  ): Promise<Begun> {
    const response = await inject('POST', `/api/auth/providers/${id}/${what}`, { headers, payload: { returnTo } })
    if (response.statusCode !== 200) throw new Error(`${what}: ${response.statusCode} ${response.body}`)
    return { url: response.json().url, cookie: cookiesOf(response) }
  }

  const finish = (id: string, query: Record<string, string>, cookie: string): Promise<LightMyRequestResponse> =>
    inject('GET', `/api/auth/providers/${id}/callback?${new URLSearchParams(query)}`, { headers: { cookie } })

  /** Logs somebody in, from the start to the end. */
  async function logIn (id: string, provider: FakeProvider, claims?: JWTPayload, cookie?: string) {
    const begun = await begin(id, cookie === undefined ? {} : { cookie })
    return finish(id, provider.authorize(begun.url, claims), begun.cookie)
  }

  /** Returns the user and the token of a session that a callback has started. */
  async function sessionOf (response: LightMyRequestResponse): Promise<LoggedIn & { user: Record<string, unknown> }> {
    const cookie = cookiesOf(response)
    const refreshed = await inject('POST', '/api/auth/refresh', { headers: { cookie } })
    if (refreshed.statusCode !== 200) throw new Error(`refresh: ${refreshed.statusCode} ${response.headers.location}`)
    const { token, user } = refreshed.json()
    return {
      id: user.id,
      email: user.email,
      password: '',
      token,
      cookie: cookiesOf(refreshed),
      user,
      headers: { authorization: `Bearer ${token}` },
    }
  }

  return { ...usher, begin, beginFor, finish, logIn, sessionOf }
}

/** Returns what the address says about a failure to which a callback has sent the browser. */
export const errorIn = ({ headers }: LightMyRequestResponse): string | null =>
  new URL(`${headers.location}`, ORIGIN).searchParams.get('error')
