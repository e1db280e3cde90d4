import { Type } from '@sinclair/typebox'
import { createParser } from '../../../schema/http/validator.ts'
import { InvalidInput } from '../../../schema/http/errors.ts'
import type { Preset, Profile } from './preset.ts'

/**
 * GitHub, which speaks OAuth 2 and says by its API who somebody is. It sends a mail to verify an address, so the
 * verified primary one belongs to the user.
 * https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps
 */
export const github: Preset = {
  name: 'GitHub',
  issuer: 'https://github.com',
  scopes: ['read:user', 'user:email'],
  // It knows `prompt=select_account` only, and has no ID token that could say when.
  reauthenticates: false,
  isOAuth: true,
}

/** Returns the endpoints of GitHub, or of a GitHub Enterprise Server. */
export function endpointsOf (issuer: URL) {
  const base = issuer.href.replace(/\/$/, '')
  const api = issuer.origin === 'https://github.com' ? 'https://api.github.com' : `${base}/api/v3`
  return {
    metadata: {
      issuer: base,
      authorization_endpoint: `${base}/login/oauth/authorize`,
      token_endpoint: `${base}/login/oauth/access_token`,
    },
    user: new URL(`${api}/user`),
    emails: new URL(`${api}/user/emails`),
  }
}

const parseUser = createParser(Type.Object({
  id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  name: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  login: Type.Optional(Type.String()),
}))
const parseEmails = createParser(Type.Object({
  emails: Type.Array(Type.Object({ email: Type.String(), primary: Type.Boolean(), verified: Type.Boolean() })),
}))

/**
 * Returns who somebody is, from the responses of `/user` and `/user/emails`. The id remains when the login name
 * changes, which somebody else can take then. Throws `InvalidInput` if they are not what GitHub documents.
 */
export function profileOf (issuer: string, user: unknown, emails: unknown): Profile {
  if (typeof user !== 'object' || user === null) throw new InvalidInput('the user must be an object')
  const { id, name, login } = parseUser(user)
  const primary = parseEmails({ emails }).emails.find((email) => email.primary && email.verified)
  return {
    issuer,
    subject: `${id}`,
    sid: undefined,
    email: primary?.email,
    isEmailProven: primary !== undefined,
    name: name || login,
    amr: [],
    authTime: undefined,
  }
}
