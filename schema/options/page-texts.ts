import { en } from '../translations/en.ts'

/** The texts of the pages in English. A host replaces any of them with the option `pages.texts` (contract 15.2). */
export const pageTexts = en

export type PageText = keyof typeof pageTexts

/** The code of what a hook of the host has rejected without a code of its own. */
export const REJECTED = 'REJECTED'

/** The texts for failures: by the code of an error, or by the sentence about an input (contract 1.2, 1.3). */
export const failureTexts: Readonly<Record<string, PageText>> = {
  INVALID_CREDENTIALS: 'wrongCredentials',
  WRONG_PASSWORD: 'wrongPassword',
  INVALID_SECOND_FACTOR: 'wrongCode',
  WRONG_SECOND_FACTOR: 'wrongCode',
  INVALID_LOGIN_CODE: 'wrongMailCode',
  EMAIL_NOT_VERIFIED: 'unverified',
  SECOND_FACTOR_MISSING: 'factorUnused',
  INVALID_CHALLENGE: 'challengeVoid',
  PASSKEYS_UNAVAILABLE: 'passkeysUnavailable',
  PASSKEY_EXISTS: 'passkeyExists',
  TOO_MANY_PASSKEYS: 'tooManyPasskeys',
  LAST_WAY_TO_SIGN_IN: 'lastWay',
  PROVIDER_NOT_FOUND: 'providerFailed',
  PROVIDER_UNAVAILABLE: 'providerUnavailable',
  PROVIDER_DENIED: 'providerDenied',
  PROVIDER_REJECTED: 'providerRejected',
  PROVIDER_MISCONFIGURED: 'providerMisconfigured',
  PROVIDER_USERINFO_REJECTED: 'providerNoEmail',
  PROVIDER_LOGIN_STALE: 'providerStale',
  ACCOUNT_DISABLED: 'accountDisabled',
  SERVICE_USER: 'loginRejected',
  INVALID_STATE: 'providerState',
  PROVIDER_EMAIL_MISSING: 'providerNoEmail',
  EMAIL_UNPROVEN: 'emailUnproven',
  LINK_REQUIRED: 'linkRequired',
  ACCOUNT_UNVERIFIED: 'accountUnverified',
  SIGN_UP_CLOSED: 'signUpClosed',
  IDENTITY_TAKEN: 'identityTaken',
  OTHER_IDENTITY: 'identityOther',
  PROVIDER_TOO_WEAK: 'providerTooWeak',
  IDENTITY_NOT_FOUND: 'identityGone',
  TOO_MANY_IDENTITIES: 'tooManyIdentities',
  // If there is no sentence of the hook.
  [REJECTED]: 'loginRejected',
  TOO_MANY_LINKS: 'tooManyLinks',
  TOTP_ACTIVE: 'totpExists',
  TOTP_NOT_FOUND: 'totpGone',
  INVALID_TOKEN: 'challengeVoid',
  PASSWORD_REQUIRED: 'passwordRequired',
  EMAIL_TAKEN: 'emailTaken',
  LOGIN_REQUIRED: 'loginRequired',
  OTHER_ADDRESS: 'otherAddress',
  ALREADY_MEMBER: 'alreadyMember',
  TOO_MANY_ORGANIZATIONS: 'tooManyOrganizations',
  TOO_MANY_MEMBERS: 'tooManyMembers',
  FORBIDDEN: 'forbidden',
  TOO_MANY_REQUESTS: 'tooManyAttempts',
  ORIGIN_NOT_ALLOWED: 'otherSite',
  UNSUPPORTED_MEDIA_TYPE: 'invalidForm',
  PAYLOAD_TOO_LARGE: 'invalidForm',
  BODY_STALLED: 'unreachable',
  DATABASE_UNAVAILABLE: 'unavailable',
  OVERLOADED: 'unavailable',
  INTERNAL_ERROR: 'failed',
  'password is too common': 'commonPassword',
  'password must be at least 8 characters': 'shortPassword',
  'password must be at most 256 characters': 'longPassword',
  'password must differ from the current one': 'samePassword',
  'password must not be the name or the email address': 'personalPassword',
  'email must be an email address': 'invalidEmail',
  'token is invalid or has expired': 'linkInvalid',
}
