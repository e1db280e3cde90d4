import { createPrivateKey, sign } from 'node:crypto'
import { isVerified } from './claims.ts'
import type { Preset } from './preset.ts'

const SECRET_SECONDS = 300

/**
 * Apple. It answers with a form that its page sends (`form_post`), verifies every address, and says the name of a user
 * only the first time, in that form.
 * https://developer.apple.com/documentation/signinwithapple/authenticating-users-with-sign-in-with-apple
 */
export const apple: Preset = {
  name: 'Apple',
  issuer: 'https://appleid.apple.com',
  scopes: ['openid', 'name', 'email'],
  // It documents neither `prompt` nor `max_age`.
  reauthenticates: false,
  parameters: { response_mode: 'form_post' },
  isEmailProven: isVerified,
}

/** A key with which a team signs client secrets. */
export interface AppleKey { teamId: string, keyId: string, clientId: string, privateKey: string }

/**
 * Returns a client secret, which Apple wants to be a JWT.
 * @param now seconds since 1970
 */
export function createAppleSecret ({ teamId, keyId, clientId, privateKey }: AppleKey, now: number): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const claims = { iss: teamId, iat: now, exp: now + SECRET_SECONDS, aud: apple.issuer, sub: clientId }
  const signed = `${encode({ alg: 'ES256', kid: keyId })}.${encode(claims)}`
  const key = { key: createPrivateKey(privateKey), dsaEncoding: 'ieee-p1363' } as const
  return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`
}

/** Returns the name in what Apple's form says about a user, or undefined if there is none. */
export function nameInForm (user: string | undefined): string | undefined {
  try {
    const { name } = JSON.parse(user ?? '') as { name?: Partial<Record<'firstName' | 'lastName', unknown>> }
    return [name?.firstName, name?.lastName].filter((part) => typeof part === 'string').join(' ').trim() || undefined
  } catch {
    return undefined
  }
}
