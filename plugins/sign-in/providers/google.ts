import { isVerified } from './claims.ts'
import type { Preset } from './preset.ts'

/**
 * Google. It is authoritative for addresses of gmail.com and of Workspace, whose domains it hosts (`hd`). An account
 * may have any other address, which it has verified at some time and whose owner may have changed since.
 * https://developers.google.com/identity/gsi/web/guides/verify-google-id-token
 */
export const google: Preset = {
  name: 'Google',
  issuer: 'https://accounts.google.com',
  scopes: ['openid', 'email', 'profile'],
  // It documents no `prompt=login` and no `max_age`: `select_account` asks which account, and not for the password.
  // https://developers.google.com/identity/openid-connect/openid-connect#authenticationuriparameters
  reauthenticates: false,
  isEmailProven: (claims) =>
    isVerified(claims) && (/@gmail\.com$/i.test(`${claims.email}`) || (typeof claims.hd === 'string' && claims.hd !== '')),
}
