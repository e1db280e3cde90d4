import { Type, type Static } from '@sinclair/typebox'
import { exampleUser, Id, KnownEmail, Password } from '../strings/text.ts'
import { User } from '../users/users.ts'
import { defineError } from '../http/errors.ts'
import type { ActorOrganization } from '../options/policy.ts'

export const InvalidCredentials = defineError('INVALID_CREDENTIALS', 'Email or password is wrong', 401)
export const Unauthenticated = defineError('UNAUTHENTICATED', 'A bearer token is required', 401)
export const InvalidToken = defineError('INVALID_TOKEN', 'The bearer token is invalid, expired or revoked', 401)
/** The membership of a token for an organisation has ended, or has got another role (contract 19.3). */
export const MembershipEnded = defineError(
  'MEMBERSHIP_ENDED', 'The membership of this token has ended or has another role now: refresh the session', 401
)

/**
 * Returns the header `WWW-Authenticate` of a 401 response (RFC 6750 3). It has an error code only if a token was sent
 * (contract 1.5).
 */
export const challengeOf = (error: unknown): string =>
  error instanceof InvalidToken || error instanceof MembershipEnded ? 'Bearer error="invalid_token"' : 'Bearer'

/**
 * The body of POST /api/auth/login (contract 4.1). An address that cannot exist leads to a failed login, not to a 400.
 */
export const Login = Type.Object({
  email: KnownEmail,
  password: Password,
}, { title: 'Login', examples: [{ email: exampleUser.email, password: exampleUser.password }] })

export type Login = Static<typeof Login>

/** The organisation of a token (contract 19.3). */
const TokenOrganization = Type.Unsafe<ActorOrganization | null>({
  type: ['object', 'null'],
  description: 'The organisation for which the token is; null for none. Only with the option `organizations`',
  required: ['id', 'role', 'membershipId'],
  properties: {
    id: Id,
    role: Type.String({ description: 'The role of the user in it' }),
    membershipId: Type.String({ description: 'Another role is another membership' }),
  },
})

/** The response to a login: an access token, and the user to whom it belongs. */
export const LoginReply = Type.Object({
  token: Type.String({ description: 'The access token, a JWT. Send it as `Authorization: Bearer`' }),
  tokenType: Type.String({ description: '"Bearer"' }),
  expiresIn:
    Type.Integer({ description: 'Seconds until the token expires; fewer than usual if the session expires earlier' }),
  user: User,
  organization: Type.Optional(TokenOrganization),
}, { title: 'LoginReply', description: 'The login succeeded; the cookie establishes the session' })

/** The response of POST /api/auth/refresh (contract 4.2). */
export const RefreshReply = Type.Object(LoginReply.properties, {
  title: 'RefreshReply',
  description: 'The session was refreshed; the response has a new token and a new cookie',
})

/** The body of POST /api/auth/token and, with the option `organizations`, of POST /api/auth/refresh (contract 19.3). */
export const TokenRequest = Type.Object({
  organizationId: Type.Optional(Type.String({
    maxLength: 100, description: 'The organisation for which the token is. Without it, the token is for none',
  })),
}, { title: 'TokenRequest' })

/** The response of POST /api/auth/token (contract 19.3). */
export const TokenReply = Type.Object(LoginReply.properties, {
  title: 'TokenReply', description: 'Another access token of the session',
})

/** The response of GET /api/protected (contract 4.8). */
export const ProtectedReply = Type.Object(
  { user: User }, { title: 'Protected', description: 'The user to whom the bearer token belongs' }
)

/** The response of GET /.well-known/jwks.json (contract 4.9, RFC 7517, RFC 7518 6.2, RFC 8037). */
export const KeySet = Type.Object({
  keys: Type.Array(Type.Object({
    kty: Type.String(),
    crv: Type.String(),
    x: Type.String(),
    y: Type.Optional(Type.String({ description: 'Keys of ES256 have it' })),
    kid: Type.String(),
    alg: Type.String(),
    use: Type.String(),
  })),
}, { title: 'KeySet', description: 'The public keys that verify access tokens' })
