import type { Configuration, TokenEndpointResponse } from 'openid-client'
import {
  ProviderDenied, ProviderMisconfigured, ProviderRejected, ProviderUnavailable, ProviderUserInfoRejected,
} from '../../../schema/sign-in/providers.ts'
import type { ProviderTokens } from '../../../db/sign-in/providers/tokens.ts'
import type { ProviderOption } from '../../../schema/options/providers.ts'
import type { Core } from '../../core.ts'
import { createPublicRequest } from '../../support/public-request.ts'
import { createAppleSecret } from './apple.ts'
import type { Secrets } from './attempts.ts'
import { isComplete, isVerified, mergeClaims } from './claims.ts'
import { createFetch, type Fetch } from './fetch.ts'
import { endpointsOf, primaryOf, profileOf } from './github.ts'
import type { Claims, Preset, Profile } from './preset.ts'
import { causes, reasonOf } from './reasons.ts'
import { emailOf } from './texts.ts'
import { tolerateTokens } from './token-response.ts'

const CONFIGURATION_MS = 3600 * 1000
// After a failure, so that a flood of logins does not become one of requests to a provider that does not work.
const FAILURE_MS = 2000
const CLOCK_TOLERANCE_SECONDS = 60
// Keys that are unknown are looked for again after this time, so that a flood of forged tokens does not become one of
// requests to the provider.
const KEYS_COOLDOWN_MS = 1000
const KEYS_MS = 600_000
const LOGOUT_SECONDS = 300
const SUBJECT_CHARACTERS = 255
const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'
// What a provider answers if it knows the app otherwise (RFC 6749 4.1.2.1 and 5.2), also as GitHub writes it.
const MISCONFIGURED: ReadonlySet<unknown> = new Set([
  'invalid_client', 'unauthorized_client', 'invalid_scope', 'invalid_request', 'unsupported_response_type',
  'unsupported_grant_type', 'redirect_uri_mismatch', 'incorrect_client_credentials', 'application_suspended',
])
const CHALLENGED = 'OAUTH_WWW_AUTHENTICATE_CHALLENGE'
// Never `none`, and no secrets that both sides share: what a provider publishes as a key must not pass for one.
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

/** Whom a logout token names, and its id. */
export interface LogoutToken {
  issuer: string
  subject: string | undefined
  sid: string | undefined
  id: string
  /** Until when the same token would be accepted again. */
  expiresAt: Date
}

/** Why a response of a provider is not accepted, which only the log says. */
class Rejected extends Error {}

type Library = typeof import('openid-client')
type Jose = typeof import('jose')

interface Connection {
  library: Library
  jose: Jose
  configuration: Configuration
  /** Undefined if the provider has no ID tokens. */
  keys: ReturnType<Jose['createRemoteJWKSet']> | undefined
}

export type ProviderClient = ReturnType<typeof createProviderClient>

/** Speaks OpenID Connect, or OAuth 2, with a provider. The libraries are imported for the first login. */
export function createProviderClient (
  { lifecycle: { log }, database: { clock }, options: { deadlines } }: Pick<Core, 'lifecycle' | 'database' | 'options'>,
  option: ProviderOption, preset: Preset | undefined
) {
  const { id, clientId, allowPrivateAddresses } = option
  const issuer = option.issuer ?? new URL(preset!.issuer)
  const scope = (option.scopes ?? preset?.scopes ?? ['openid', 'email', 'profile']).join(' ')
  const send = createPublicRequest({
    allowPrivateAddresses, connectMs: deadlines.providerConnect, dnsMs: deadlines.dns,
  })
  const fetch: Fetch = createFetch(send, { timeoutMs: deadlines.provider, isHttpAllowed: allowPrivateAddresses })
  const reauthenticates = preset?.reauthenticates ?? true
  // Whether the claims can say that the address belongs to the user.
  const canProve = option.trustEmail === true
    ? option.preset !== 'microsoft'
    : option.trustEmail === undefined && preset?.isEmailProven !== undefined
  const github = preset?.isOAuth ? endpointsOf(issuer) : undefined
  let known: Connection | undefined
  let connecting: { connection: Promise<Connection>, since: number, lifeMs: number } | undefined

  function connect (): Promise<Connection> {
    if (connecting && performance.now() - connecting.since < connecting.lifeMs) return connecting.connection
    const current = {
      since: performance.now(),
      lifeMs: CONFIGURATION_MS,
      connection: open().then((connection) => {
        known = connection
        return connection
      }, (error: unknown) => {
        report(error, 'The configuration of a provider could not be read')
        current.since = performance.now()
        current.lifeMs = FAILURE_MS
        // What is known still works, such as while the provider restarts.
        if (!known) throw error
        return known
      }),
    }
    connecting = current
    return current.connection
  }

  // The configuration and the keys may be what is wrong with a login that has failed, so they are read again for the
  // next one.
  function doubt (): void {
    if (connecting) connecting.lifeMs = FAILURE_MS
  }

  async function open (): Promise<Connection> {
    const [library, jose] = await Promise.all([import('openid-client'), import('jose')])
    const metadata = {
      [library.clockTolerance]: CLOCK_TOLERANCE_SECONDS,
      [library.clockSkew]: Math.round((clock.now() - Date.now()) / 1000),
    }
    const authenticate = createAuthentication(library)
    const seconds = deadlines.provider / 1000
    const configuration = github
      ? new library.Configuration(github.metadata, clientId, metadata, authenticate)
      : await library.discovery(issuer, clientId, metadata, authenticate, {
        [library.customFetch]: fetch,
        timeout: seconds,
        ...allowPrivateAddresses && { execute: [library.allowInsecureRequests] },
      })
    configuration[library.customFetch] = tolerateTokens(fetch, configuration.serverMetadata().token_endpoint)
    configuration.timeout = seconds
    if (allowPrivateAddresses) library.allowInsecureRequests(configuration)
    const { jwks_uri: jwksUri, authorization_endpoint: authorization, token_endpoint: token } =
      configuration.serverMetadata()
    const needed = { authorization_endpoint: authorization, token_endpoint: token, ...!github && { jwks_uri: jwksUri } }
    for (const [name, url] of Object.entries(needed)) {
      if (!isHttpUrl(url)) throw new Rejected(`its ${name} is missing or no address`)
    }
    const keys = jwksUri === undefined
      ? undefined
      : jose.createRemoteJWKSet(new URL(jwksUri), {
        [jose.customFetch]: fetch,
        timeoutDuration: deadlines.provider,
        cooldownDuration: KEYS_COOLDOWN_MS,
        cacheMaxAge: KEYS_MS,
      })
    return { library, jose, configuration, keys }
  }

  // Returns the way to send the client secret that the provider supports.
  function createAuthentication ({ ClientSecretBasic, ClientSecretPost, None }: Library): ReturnType<Library['None']> {
    const { clientSecret, teamId, keyId } = option
    if (clientSecret === undefined) return None()
    if (teamId !== undefined && keyId !== undefined) {
      return (server, client, body, headers) => {
        const now = Math.floor(clock.now() / 1000)
        const secret = createAppleSecret({ teamId, keyId, clientId, privateKey: clientSecret }, now)
        ClientSecretPost(secret)(server, client, body, headers)
      }
    }
    const [basic, post] = [ClientSecretBasic(clientSecret), ClientSecretPost(clientSecret)]
    return (server, client, body, headers) => {
      // In a header, the secret is encoded (RFC 6749, 2.3.1), which not all providers decode. Those that say nothing
      // know only the header.
      const methods: unknown = server.token_endpoint_auth_methods_supported
      const isPost = github || (Array.isArray(methods) && methods.includes('client_secret_post'))
      const authenticate = isPost ? post : basic
      authenticate(server, client, body, headers)
    }
  }

  function report (error: unknown, message: string): void {
    log[isOutage(error) ? 'warn' : 'info']({ provider: id, reason: reasonOf(error) }, message)
  }

  // Throws an error that a response may report in place of one of the libraries.
  function reject (error: unknown, message: string): never {
    report(error, message)
    const all = causes(error) as { code?: unknown, error?: unknown }[]
    const refusal = all.find((cause) => MISCONFIGURED.has(cause.error) || cause.code === CHALLENGED)
    if (refusal) throw new ProviderMisconfigured({ cause: error })
    const denied = all.find(({ code }) => code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR')
    if (isOutage(error) || isTransient(denied?.error)) throw new ProviderUnavailable({ cause: error })
    throw denied ? new ProviderDenied({ cause: error }) : new ProviderRejected({ cause: error })
  }

  // What a login may not need is asked without stopping it: the failure is thrown where the answer is needed.
  async function ask<Answer> (question: () => Promise<Answer>): Promise<{ answer?: Answer, failure?: Error }> {
    try {
      return { answer: await question() }
    } catch (error) {
      report(error, 'A provider does not say more about a user')
      const Failure = isOutage(error) ? ProviderUnavailable : ProviderUserInfoRejected
      return { failure: new Failure({ cause: error }) }
    }
  }

  async function readProfile (
    { library, jose, configuration, keys }: Connection, tokens: TokenEndpointResponse, nonce: string
  ): Promise<Profile> {
    if (github) return readFromGithub(tokens.access_token)
    const { payload } = await jose.jwtVerify(tokens.id_token!, keys!, {
      algorithms,
      audience: clientId,
      currentDate: new Date(clock.now()),
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      requiredClaims: ['iss', 'sub', 'exp', 'iat', 'nonce'],
    })
    const { iss, sub } = payload
    if (payload.nonce !== nonce) throw new Rejected('the nonce is another one')
    // The library has compared the issuer, and the audience and the party that are authorized.
    if (typeof iss !== 'string' || !isSubject(sub)) throw new Rejected('the subject is missing or malformed')
    const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined
    // The library compares the subject (OpenID Connect Core 1.0, 5.3.2). What it says about another one is not used.
    const { answer, failure } = hasUserInfo && !isComplete(payload, canProve)
      ? await ask(() => library.fetchUserInfo(configuration, tokens.access_token, sub))
      : {}
    const described = describe(mergeClaims(payload, answer ?? {}))
    const isMissing = emailOf(described.email) === undefined ||
      (canProve && !described.isEmailProven && failure instanceof ProviderUnavailable)
    return { issuer: iss, subject: sub, ...described, failure: isMissing ? failure : undefined }
  }

  function describe (claims: Claims): Omit<Profile, 'issuer' | 'subject'> {
    const textOf = (value: unknown) => typeof value === 'string' ? value : undefined
    const { sid, auth_time: authTime, amr } = claims
    const email = textOf(claims.email)
    // A provider that promises nothing is trusted only if the option says so: then it must have verified the address,
    // and a tenant of Microsoft, which does not say so, counts as the owner of its addresses.
    const isProven = option.trustEmail === true
      ? preset?.isEmailProven?.(claims) ?? (option.preset === 'microsoft' || isVerified(claims))
      : option.trustEmail === undefined && (preset?.isEmailProven?.(claims) ?? false)
    return {
      sid: isSubject(sid) ? sid : undefined,
      email,
      isEmailProven: email !== undefined && isProven,
      name: textOf(claims.name),
      amr: Array.isArray(amr) ? amr.filter((method) => typeof method === 'string') : [],
      authTime: typeof authTime === 'number' ? authTime : undefined,
    }
  }

  async function readFromGithub (accessToken: string): Promise<Profile> {
    const { user, emails, metadata } = github!
    const get = async (url: URL): Promise<unknown> => {
      const response = await fetch(url.href, {
        headers: {
          authorization: `Bearer ${accessToken}`,
          accept: 'application/vnd.github+json',
          'x-github-api-version': '2022-11-28',
        },
      })
      if (response.status !== 200) throw new Rejected(`${url.pathname} has answered ${response.status}`)
      return response.json()
    }
    const profile = profileOf(metadata.issuer, await get(user))
    // A GitHub App without the permission to read addresses gets 403, or 404.
    const { answer: email, failure } = await ask(async () => primaryOf(await get(emails)))
    return { ...profile, email, isEmailProven: email !== undefined && option.trustEmail !== false, failure }
  }

  return {
    name: option.name ?? preset?.name ?? id,
    option,
    /** Whether the provider logs a user in once more if it is asked to, and says when it did. */
    reauthenticates,

    /** Returns where the browser goes. Throws `ProviderUnavailable`, `ProviderRejected`. */
    async authorizationUrl (
      { state, nonce, verifier }: Secrets & { state: string }, redirectUri: string, isStepUp: boolean
    ): Promise<string> {
      try {
        const { library, configuration } = await connect()
        return library.buildAuthorizationUrl(configuration, {
          redirect_uri: redirectUri,
          scope,
          state,
          code_challenge: await library.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
          ...!github && { nonce },
          ...preset?.parameters,
          ...isStepUp && reauthenticates && { prompt: 'login', max_age: '0' },
        }).href
      } catch (error) {
        return reject(error, 'A login at a provider could not begin')
      }
    },

    /**
     * Returns who has logged in, from what the provider has sent to `redirectUri`. Throws `ProviderDenied`,
     * `ProviderRejected`, `ProviderUnavailable`.
     */
    async redeem (
      response: Record<string, string>, redirectUri: string, { nonce, verifier, state }: Secrets & { state: string }
    ): Promise<Profile> {
      try {
        const connection = await connect()
        const { library, configuration } = connection
        const url = new URL(`${redirectUri}?${new URLSearchParams(response)}`)
        const tokens = await library.authorizationCodeGrant(configuration, url, {
          expectedState: state,
          pkceCodeVerifier: verifier,
          ...!github && { expectedNonce: nonce, idTokenExpected: true },
        })
        const profile = await readProfile(connection, tokens, nonce)
        return option.keepTokens ? { ...profile, tokens: toTokens(tokens) } : profile
      } catch (error) {
        doubt()
        return reject(error, 'The response of a provider is not accepted')
      }
    },

    /**
     * Returns whom a logout token names (OpenID Connect Back-Channel Logout 1.0, 2.6). Throws `ProviderRejected`,
     * `ProviderUnavailable`.
     */
    async verifyLogout (token: string): Promise<LogoutToken> {
      try {
        const { jose, configuration, keys } = await connect()
        if (!keys) throw new Rejected('it has no logout tokens')
        const now = clock.now()
        const { payload, protectedHeader: { typ } } = await jose.jwtVerify(token, keys, {
          algorithms,
          audience: clientId,
          currentDate: new Date(now),
          clockTolerance: CLOCK_TOLERANCE_SECONDS,
          requiredClaims: ['iss', 'iat', 'jti', 'events'],
          maxTokenAge: LOGOUT_SECONDS,
        })
        const { iss, sub, sid, jti, events, nonce, iat } = payload
        const expected = configuration.serverMetadata().issuer.replace('{tenantid}', `${payload.tid as string}`)
        if (iss !== expected) throw new Rejected('the issuer is another one')
        // Some providers still write the type of version 0 of the draft.
        if (typ !== undefined && !['logout+jwt', 'application/logout+jwt', 'jwt'].includes(typ.toLowerCase())) {
          throw new Rejected('the type is not that of a logout token')
        }
        const event = isObject(events) ? events[LOGOUT_EVENT] : undefined
        if (!isObject(event)) throw new Rejected('the event is not a logout')
        if (nonce !== undefined) throw new Rejected('a logout token must have no nonce')
        if (sub === undefined && sid === undefined) throw new Rejected('neither a subject nor a session is named')
        const isNamed = (value: unknown): value is string | undefined => value === undefined || isSubject(value)
        if (!isNamed(sub) || !isNamed(sid) || !isSubject(jti)) throw new Rejected('sub, sid or jti is malformed')
        const expiresAt = new Date((iat! + LOGOUT_SECONDS + 2 * CLOCK_TOLERANCE_SECONDS) * 1000)
        return { issuer: iss, subject: sub, sid, id: jti, expiresAt }
      } catch (error) {
        return reject(error, 'A logout token of a provider is not accepted')
      }
    },
  }

  function toTokens (tokens: TokenEndpointResponse): ProviderTokens {
    const { access_token: accessToken, refresh_token: refreshToken, scope: granted, expires_in: seconds } = tokens
    const expiresAt = seconds === undefined ? undefined : Math.floor(clock.now()) + seconds * 1000
    return { accessToken, refreshToken, scope: granted, expiresAt }
  }
}

// OpenID Connect Core 1.0, 2: at most 255 characters of ASCII. PostgreSQL has no NUL.
const isSubject = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= SUBJECT_CHARACTERS && !/[\p{Cc}\p{Cs}]/u.test(value)

const isOutage = (error: unknown): boolean => causes(error).some((cause) => cause instanceof ProviderUnavailable)

const isTransient = (error: unknown): boolean => error === 'server_error' || error === 'temporarily_unavailable'

const isHttpUrl = (value: unknown): value is string =>
  typeof value === 'string' && ['https:', 'http:'].includes(URL.parse(value)?.protocol ?? '')

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
