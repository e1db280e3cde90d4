import type { Preset } from './preset.ts'

/**
 * Microsoft Entra ID, with the accounts of all tenants and of persons unless the option `issuer` names a tenant. The
 * admin of any tenant can write any address into the claim `email`, so it proves nothing ("nOAuth").
 * https://learn.microsoft.com/en-us/entra/identity-platform/claims-validation
 */
export const microsoft: Preset = {
  name: 'Microsoft',
  issuer: 'https://login.microsoftonline.com/common/v2.0',
  scopes: ['openid', 'email', 'profile'],
  // The app registration must have the optional claim `auth_time` of the ID token.
  // https://learn.microsoft.com/en-us/entra/identity-platform/optional-claims-reference
  reauthenticates: true,
}
