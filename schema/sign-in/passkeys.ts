import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { defineError } from '../http/errors.ts'
import { Id, Instant, line } from '../strings/text.ts'

export const PasskeysUnavailable = defineError(
  'PASSKEYS_UNAVAILABLE', 'Passkeys need a public address: set publicUrl (PUBLIC_URL of a node) to an https:// address with a domain name, or use localhost', 409
)
export const PasskeyNotFound = defineError('PASSKEY_NOT_FOUND', 'Passkey not found', 404)
export const PasskeyExists = defineError('PASSKEY_EXISTS', 'This passkey is registered already', 409)
export const TooManyPasskeys = defineError('TOO_MANY_PASSKEYS', 'A user may have 20 passkeys: remove one first', 409)
export const LastWayToSignIn = defineError(
  'LAST_WAY_TO_SIGN_IN', 'The last way to sign in cannot be removed: set a password or add another one first', 409
)
/**
 * A passkey that was not accepted, for whatever reason. Its code is that of a wrong password, and it says nothing more.
 */
export const InvalidPasskey = defineError('INVALID_CREDENTIALS', 'The passkey was not accepted', 401)

/** How many passkeys a user may have. */
export const MAX_PASSKEYS_PER_USER = 20

/** How long a ceremony may take, from its options to its response (WebAuthn Level 3, 15.1). */
export const CEREMONY_SECONDS = 300

/** The algorithms of keys by their COSE identifiers, the preferred one first: EdDSA, ES256 and RS256. */
export const algorithms = [-8, -7, -257] as const

/** Bytes in base64url without padding. */
const bytes = (maxBytes: number, description: string) =>
  Type.String({ format: 'base64url', maxLength: Math.ceil(maxBytes * 4 / 3), description })

// WebAuthn Level 3, 4: "Credential IDs are at most 1023 bytes".
const CREDENTIAL_ID_BYTES = 1023
const CredentialId = bytes(CREDENTIAL_ID_BYTES, 'The id that the authenticator has given the passkey')
const ClientData = bytes(4096, 'What the browser says about the ceremony, as JSON')

/** A member that browsers and password managers send empty, null or not at all if they have nothing to say. */
const maybe = <Schema extends TSchema>(schema: Schema) => Type.Optional(Type.Union([schema, Type.Literal(''), Type.Null()]))

const common = {
  id: CredentialId,
  rawId: maybe(CredentialId),
  type: Type.Optional(Type.Union([Type.String({ maxLength: 32, description: '`public-key`' }), Type.Null()])),
  authenticatorAttachment: Type.Optional(Type.Union([Type.String({ maxLength: 32 }), Type.Null()])),
  clientExtensionResults: Type.Optional(Type.Union([Type.Object({}, { description: 'Ignored' }), Type.Null()])),
}

const Transports = Type.Array(Type.String({ maxLength: 32, pattern: '^[a-z-]*$' }), {
  maxItems: 10, description: 'How the browser reaches the authenticator',
})

/** What `navigator.credentials.create()` returns, as `toJSON()` writes it (WebAuthn Level 3, 5.1). */
export const RegistrationResponse = Type.Object({
  ...common,
  response: Type.Object({
    clientDataJSON: ClientData,
    attestationObject: bytes(8192, 'The public key, and what the authenticator says about it'),
    transports: Type.Optional(Type.Union([Transports, Type.Null()])),
  }),
}, { title: 'RegistrationResponse', description: 'A `RegistrationResponseJSON`' })

/** What `navigator.credentials.get()` returns, as `toJSON()` writes it. */
export const AuthenticationResponse = Type.Object({
  ...common,
  response: Type.Object({
    clientDataJSON: ClientData,
    authenticatorData: bytes(2048, 'What the authenticator says about the ceremony'),
    signature: bytes(1024, 'The signature of both'),
    userHandle: maybe(bytes(64, 'The user of the passkey')),
  }),
}, { title: 'AuthenticationResponse', description: 'An `AuthenticationResponseJSON`' })

export type RegistrationResponse = Static<typeof RegistrationResponse>
export type AuthenticationResponse = Static<typeof AuthenticationResponse>

// The values are those of an authenticator, which examples cannot have.
const exampleRegistration = {
  id: 'AAEC', rawId: 'AAEC', type: 'public-key', response: { clientDataJSON: 'e30', attestationObject: 'oA' },
}
const exampleAuthentication = {
  id: 'AAEC',
  rawId: 'AAEC',
  type: 'public-key',
  response: { clientDataJSON: 'e30', authenticatorData: 'AA', signature: 'AA' },
}

const PasskeyName = line({ trim: true, minLength: 1, maxLength: 100, description: 'A name to tell passkeys apart' })

/** The body of POST /api/auth/passkeys (contract 16.3). */
export const AddPasskey = Type.Object({
  name: Type.Optional(PasskeyName),
  credential: RegistrationResponse,
}, { title: 'AddPasskey', examples: [{ name: 'Phone', credential: exampleRegistration }] })

/** The body of PATCH /api/auth/passkeys/{id}. */
export const RenamePasskey = Type.Object({
  name: PasskeyName,
}, { title: 'RenamePasskey', examples: [{ name: 'Phone' }] })

/** The body of POST /api/auth/login/passkey. */
export const PasskeyLogin = Type.Object({ credential: AuthenticationResponse }, {
  title: 'PasskeyLogin', examples: [{ credential: exampleAuthentication }],
})

const LastUse = Type.Unsafe<Date | null>({
  type: ['string', 'null'], format: 'date-time', description: 'The last login; null if there was none',
})

/** A passkey, as its user sees it. */
export const Passkey = Type.Object({
  id: Id,
  name: Type.String(),
  createdAt: Instant,
  lastUsedAt: LastUse,
  backedUp: Type.Boolean({ description: 'Whether its provider keeps a copy of it, so that it outlives the device' }),
}, { title: 'Passkey', description: 'A passkey with which its user can sign in' })

export const PasskeyList = Type.Array(Passkey, { description: 'Passkeys, newest first' })

export type Passkey = Static<typeof Passkey>

const Challenge = Type.String({ description: 'In base64url. It is valid once, for five minutes' })
const RpId = Type.String({ description: 'The domain for which the passkey works' })
const Timeout = Type.Integer({ description: 'Milliseconds that the browser may wait' })
const Descriptors = Type.Array(Type.Object({
  type: Type.Literal('public-key'),
  id: Type.String(),
  transports: Type.Optional(Type.Array(Type.String())),
}))
const UserVerification = Type.Literal('required')

/**
 * The response of POST /api/auth/passkeys/options: the argument of `PublicKeyCredential.parseCreationOptionsFromJSON`.
 */
export const CreationOptions = Type.Object({
  rp: Type.Object({ id: RpId, name: Type.String() }),
  user: Type.Object({
    id: Type.String({ description: 'The bytes of the id of the user, in base64url' }),
    name: Type.String(),
    displayName: Type.String(),
  }),
  challenge: Challenge,
  pubKeyCredParams: Type.Array(Type.Object({ type: Type.Literal('public-key'), alg: Type.Integer() })),
  timeout: Timeout,
  excludeCredentials: Descriptors,
  authenticatorSelection: Type.Object({
    residentKey: Type.Literal('required'), requireResidentKey: Type.Literal(true), userVerification: UserVerification,
  }),
  attestation: Type.Literal('none'),
}, { title: 'PasskeyCreationOptions', description: 'A `PublicKeyCredentialCreationOptionsJSON`' })

/**
 * The response of POST /api/auth/login/passkey/options: the argument of
 * `PublicKeyCredential.parseRequestOptionsFromJSON`.
 */
export const RequestOptions = Type.Object({
  challenge: Challenge,
  timeout: Timeout,
  rpId: RpId,
  allowCredentials: Descriptors,
  userVerification: UserVerification,
}, {
  title: 'PasskeyRequestOptions',
  description: 'A `PublicKeyCredentialRequestOptionsJSON`; the cookie binds the ceremony to the browser',
})

export type CreationOptions = Static<typeof CreationOptions>
export type RequestOptions = Static<typeof RequestOptions>

/** The response of GET /.well-known/webauthn (WebAuthn Level 3, 5.11.1). */
export const RelatedOrigins = Type.Object({
  origins: Type.Array(Type.String(), { description: 'The origins whose pages may use the passkeys' }),
}, { title: 'RelatedOrigins', description: 'The origins whose pages may use the passkeys of this domain' })
