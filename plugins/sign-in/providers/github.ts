import { Type } from '@sinclair/typebox'
import { createParser } from '../../../schema/http/validator.ts'
import { InvalidInput } from '../../../schema/http/errors.ts'
import type { Preset, Profile } from './preset.ts'
import { isNameLike } from './texts.ts'

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
  name: Type.Optional(Type.Unknown()),
  login: Type.Optional(Type.Unknown()),
}))
const parseEmails = createParser(Type.Object({ emails: Type.Array(Type.Unknown()) }))

/**
 * Returns who somebody is, from the response of `/user`, without the address. The id remains when the login name
 * changes, which somebody else can take then. Throws `InvalidInput` if there is no id as GitHub documents it.
 */
export function profileOf (issuer: string, user: unknown): Profile {
  if (typeof user !== 'object' || user === null) throw new InvalidInput('the user must be an object')
  const { id, name, login } = parseUser(user)
  return {
    issuer,
    subject: `${id}`,
    sid: undefined,
    email: undefined,
    isEmailProven: false,
    name: [name, login].find(isNameLike),
    amr: [],
    authTime: undefined,
  }
}

/**
 * Returns the verified primary address in the response of `/user/emails`, or undefined if there is none. Throws
 * `InvalidInput` if it is no list.
 */
export function primaryOf (emails: unknown): string | undefined {
  const isPrimary = (entry: unknown): entry is { email: string } => {
    const { email, primary, verified } = (entry ?? {}) as Record<string, unknown>
    return primary === true && verified === true && typeof email === 'string'
  }
  return parseEmails({ emails }).emails.find(isPrimary)?.email
}
