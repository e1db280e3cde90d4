import { Type, type Static } from '@sinclair/typebox'
import { defineError } from '../http/errors.ts'
import { line } from '../strings/text.ts'

export const TotpActive = defineError(
  'TOTP_ACTIVE', 'There is an authenticator app already: remove it before another one is set up', 409
)
export const TotpNotFound = defineError('TOTP_NOT_FOUND', 'There is no authenticator app', 404)

/** The code that an authenticator app shows. Apps show it in groups, so spaces and hyphens do not matter. */
export const TotpCode = line({ maxLength: 64, description: 'The six digits that the authenticator app shows' })

/** One of the codes that replace the authenticator app once. */
export const RecoveryCode =
  line({ maxLength: 128, description: 'A recovery code; case, spaces and hyphens do not matter' })

/** The response of POST /api/auth/totp (contract 16.4). */
export const NewTotp = Type.Object({
  secret: Type.String({ description: 'The secret in base32, to be typed into an app that cannot scan' }),
  uri: Type.String({ description: 'The same as an `otpauth:` address, which opens apps on the same device' }),
  qrCode: Type.String({ description: 'The address as a QR code: an SVG document' }),
}, { title: 'NewTotp', description: 'The secret for an authenticator app. It has no effect until a code confirms it' })

/** The body of POST /api/auth/totp/confirm. */
export const ConfirmTotp = Type.Object({ code: TotpCode }, { title: 'ConfirmTotp', examples: [{ code: '123456' }] })

export type ConfirmTotp = Static<typeof ConfirmTotp>

const Codes = Type.Array(Type.String(), {
  description: 'Ten codes, of which each replaces the authenticator app once. They are never shown again',
})

/** The response of POST /api/auth/totp/confirm. */
export const ConfirmedTotp = Type.Object({
  recoveryCodes: Codes,
  token:
    Type.String({ description: 'A new access token of this session, which counts as authenticated by both factors' }),
}, { title: 'ConfirmedTotp', description: 'From now on, logins need a code' })

/** The response of POST /api/auth/recovery-codes. */
export const RecoveryCodes = Type.Object({ recoveryCodes: Codes }, {
  title: 'RecoveryCodes',
  description: 'New codes; all earlier ones are void',
})

/** The response of GET /api/auth/second-factor. */
export const SecondFactor = Type.Object({
  totp: Type.Unsafe<{ confirmedAt: Date } | null>({
    type: ['object', 'null'],
    properties: { confirmedAt: { type: 'string', format: 'date-time', description: 'RFC 3339, UTC' } },
    required: ['confirmedAt'],
    description: 'The authenticator app; null if logins need none',
  }),
  recoveryCodesLeft: Type.Integer({ description: 'Recovery codes that were not used' }),
  passkeys: Type.Integer({ description: 'Passkeys, which also serve as a second factor' }),
  password: Type.Boolean({ description: 'Whether the user has a password' }),
  mail: Type.Boolean({
    description: 'Whether the code of a mail steps up, with POST /api/auth/step-up/mail: for users without a second factor',
  }),
  providers: Type.Array(Type.String(), {
    description: 'The ids of the providers that step up, with POST /api/auth/providers/{id}/step-up. One that cannot log ' +
      'the user in once more does so only for users who have nothing else',
  }),
}, { title: 'SecondFactor', description: 'How the user proves to be the owner' })
