import { Type, type Static } from '@sinclair/typebox'
import { exampleUser, line, Password } from './text.ts'
import { User } from './user.ts'

/** POST /api/auth/login (contract 4.1). An address that cannot exist is a failed login, not a bad request. */
export const Login = Type.Object({
  email: line({ trim: true, maxLength: 1024 }),
  password: Password,
}, { title: 'Login', examples: [{ email: exampleUser.email, password: exampleUser.password }] })

export type Login = Static<typeof Login>

/** An access token, and the user it speaks for. */
export const LoginReply = Type.Object({
  token: Type.String({ description: 'A JWT, for `Authorization: Bearer`' }),
  tokenType: Type.String({ description: '"Bearer"' }),
  expiresIn: Type.Integer({ description: 'Seconds; less than usual where the session ends sooner' }),
  user: User,
}, { title: 'LoginReply', description: 'Logged in; the cookie establishes the session' })

/** POST /api/auth/refresh (contract 4.2). */
export const RefreshReply = Type.Object(LoginReply.properties, { title: 'RefreshReply', description: 'Refreshed; the cookie is another one' })

/** GET /api/protected (contract 4.8). */
export const ProtectedReply = Type.Object({ user: User }, { title: 'Protected', description: 'The actor' })

/** GET /.well-known/jwks.json (contract 4.9, RFC 7517, RFC 8037). */
export const KeySet = Type.Object({
  keys: Type.Array(Type.Object({
    kty: Type.String(),
    crv: Type.String(),
    x: Type.String(),
    kid: Type.String(),
    alg: Type.String(),
    use: Type.String(),
  })),
}, { title: 'KeySet', description: 'The public keys of access tokens' })
