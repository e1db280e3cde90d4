import { Type, type Static } from '@sinclair/typebox'
import { defineError } from '../http/errors.ts'
import { MailToken } from '../mail-links/mail-token.ts'
import { Id, Instant, nullable } from '../strings/text.ts'

export const ProviderNotFound = defineError('PROVIDER_NOT_FOUND', 'There is no such provider', 404)
export const ProviderUnavailable =
  defineError('PROVIDER_UNAVAILABLE', 'The provider cannot be reached or does not work: try again', 503)
export const ProviderDenied = defineError('PROVIDER_DENIED', 'The provider has not logged the user in', 401)
/** What the provider has sent was not accepted, for whatever reason. Only the log says more. */
export const ProviderRejected =
  defineError('PROVIDER_REJECTED', 'The response of the provider was not accepted: start again', 401)
/**
 * The provider refuses this app: its id, its secret or its redirect URI are not those that are registered there, or it
 * does not offer what the app asks for.
 */
export const ProviderMisconfigured = defineError(
  'PROVIDER_MISCONFIGURED', 'The provider does not accept this app: the reason is in the log of its operator', 503
)
/** The provider does not say what a login needs to know of the user, besides who it is. Only the log says more. */
export const ProviderUserInfoRejected = defineError(
  'PROVIDER_USERINFO_REJECTED',
  'What the provider says about the user cannot be used: sign up, and link the provider then', 409
)
/** The provider has not authenticated the user once more, as a step-up needs it. */
export const ProviderLoginStale = defineError(
  'PROVIDER_LOGIN_STALE', 'The provider has not logged the user in once more: confirm in another way', 401
)
export const AccountDisabled = defineError('ACCOUNT_DISABLED', 'The account is disabled', 403)
export const InvalidState = defineError(
  'INVALID_STATE', 'This was started in another browser, took too long or was completed already: start again', 401
)
export const ProviderEmailMissing = defineError(
  'PROVIDER_EMAIL_MISSING', 'The provider gives no address of the user: sign up, and link the provider then', 409
)
/**
 * Somebody without an account has logged in at a provider that does not vouch for the address, which may be anybody's.
 */
export class EmailUnproven extends defineError(
  'EMAIL_UNPROVEN', 'The provider does not prove the address: open the link of the mail that was sent to it', 409
) {
  /** What proves to the confirmation that the same browser has signed up. */
  readonly signUpId: string

  constructor (signUpId: string) {
    super()
    this.signUpId = signUpId
  }
}
export const LinkRequired = defineError(
  'LINK_REQUIRED', 'An account has the address that the provider gives: log in, and link the provider then', 409
)
export const AccountUnverified = defineError(
  'ACCOUNT_UNVERIFIED',
  'An account has the address that the provider gives, but nobody has verified it: set a password by mail', 409
)
export const SignUpClosed = defineError('SIGN_UP_CLOSED', 'Nobody has an account with this identity', 403)
export const IdentityTaken = defineError('IDENTITY_TAKEN', 'This identity belongs to another account', 409)
export const IdentityNotFound = defineError('IDENTITY_NOT_FOUND', 'Identity not found', 404)
export const TooManyIdentities =
  defineError('TOO_MANY_IDENTITIES', 'A user may have 20 identities: remove one first', 409)
/** The user of a step-up is not the one who has logged in at the provider. */
export const OtherIdentity =
  defineError('OTHER_IDENTITY', 'This identity does not belong to the account: use another one', 403)

/** The provider cannot log the user in once more, and the user has something that proves more. */
export const ProviderTooWeak = defineError(
  'PROVIDER_TOO_WEAK', 'This provider cannot log you in once more to confirm that it is you: confirm in another way', 403
)

/** How many identities a user may have. */
export const MAX_IDENTITIES_PER_USER = 20

/** How long a user may take at a provider. */
export const STATE_SECONDS = 900

/** The `amr` of a session that was started by a provider. RFC 8176 has no value for it; Microsoft uses this one. */
export const FEDERATED = 'fed'

/** A provider, as everybody sees it. */
export const Provider = Type.Object({
  id: Type.String({ description: 'Its name in paths, such as `github`' }),
  name: Type.String({ description: 'Its name for people, such as `GitHub`' }),
}, { title: 'Provider', description: 'A provider with which users sign in' })

export const ProviderList = Type.Array(Provider, { description: 'The providers, in the order of the options' })

export type Provider = Static<typeof Provider>

/** An account that a user has at a provider. */
export const Identity = Type.Object({
  id: Id,
  provider: Type.String({ description: 'The id of the provider' }),
  email: nullable('The address that the provider gave last, verified or not; null if there was none'),
  createdAt: Instant,
  lastUsedAt: Type.Unsafe<Date | null>({
    type: ['string', 'null'], format: 'date-time', description: 'The last login; null if there was none',
  }),
}, { title: 'Identity', description: 'An account at a provider with which its user can sign in' })

export const IdentityList = Type.Array(Identity, { description: 'Identities, newest first' })

/** The longest address of where a browser goes, also with its characters encoded. */
export const RETURN_TO_CHARACTERS = 2048

const ReturnTo = Type.Optional(Type.String({
  maxLength: RETURN_TO_CHARACTERS,
  description: `Where the browser goes at the end: a path of this origin, or a URL of \`publicUrl\` or an allowed origin, of at most ${RETURN_TO_CHARACTERS} characters with those encoded that are not ASCII`,
}))

/** The query of GET /api/auth/providers/{id}/start. */
export const StartProvider = Type.Object({ returnTo: ReturnTo })

/** The body of POST /api/auth/providers/{id}/link and of …/step-up. */
export const BeginProvider = Type.Object({ returnTo: ReturnTo }, {
  title: 'BeginProvider', examples: [{ returnTo: '/notes' }],
})

/** The body of POST /api/auth/providers/{id}/join. */
export const JoinByProvider = Type.Object({ token: MailToken, returnTo: ReturnTo }, {
  title: 'JoinByProvider', examples: [{ token: 'the-token-of-the-link', returnTo: '/notes' }],
})

/** The response: where the page sends the browser. */
export const BegunProvider = Type.Object({
  url: Type.String({ description: 'The address at the provider; the browser with the cookie of this response opens it' }),
}, { title: 'BegunProvider', description: 'Where the page sends the browser' })

const parameter = (maxLength: number, description: string) => Type.Optional(Type.String({ maxLength, description }))

/** What a provider sends, in the query or as a form (RFC 6749 4.1.2, RFC 9207). */
export const ProviderResponse = Type.Object({
  state: parameter(8192, 'What the start has sent to the provider'),
  code: parameter(8192, 'The authorization code'),
  iss: parameter(2048, 'The issuer (RFC 9207)'),
  error: parameter(256, 'Why the provider has not logged the user in'),
  user: Type.Optional(Type.Unsafe<unknown>({ description: 'What Apple says about the user the first time; left out if the address of the callback would have more than 12 KiB' })),
}, { title: 'ProviderResponse', examples: [{ error: 'access_denied' }] })

export type ProviderResponse = Static<typeof ProviderResponse>

/** The form of POST /api/auth/providers/{id}/logout (OpenID Connect Back-Channel Logout 1.0, 2.5). */
export const BackChannelLogout = Type.Object({
  logout_token: Type.String({ maxLength: 16_384, description: 'A JWT of the provider' }),
}, { title: 'BackChannelLogout', examples: [{ logout_token: 'e30.e30.AA' }] })

/** The response to it. */
export const LoggedOut = Type.Object({}, { title: 'LoggedOut', description: 'The sessions have ended' })
