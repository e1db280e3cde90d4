/** The kinds of ways to sign in, second factors and API keys, in the order in which people read them. */
export const credentialKinds = ['passkey', 'totp', 'identity', 'api-key'] as const
export type CredentialKind = typeof credentialKinds[number]
