import { Type } from '@sinclair/typebox'
import { toAsciiAddress } from '../../strings/address.ts'
import { defineError, InvalidInput } from '../../http/errors.ts'
import { ErrorsReply } from '../../http/reply.ts'
import { MailToken } from '../../mail-links/mail-token.ts'
import { credentialKinds, type CredentialKind } from '../ways.ts'
import { exampleUser, Id, Instant, KnownEmail, NewPassword, nullable, Password } from '../../strings/text.ts'

export const WrongPassword = defineError('WRONG_PASSWORD', 'The current password is wrong', 403)
export const PasswordIsSet = defineError('PASSWORD_IS_SET', 'The user already has a password', 409)
export const NoMailer = defineError('NO_MAILER', 'No mail can be sent: the service has no mailer', 409)

/** The body of PUT /api/auth/password (contract 4.6). */
export const ChangePassword = Type.Object({
  currentPassword: Password,
  password: NewPassword,
}, { title: 'ChangePassword', examples: [{ currentPassword: exampleUser.password, password: 'quiet lantern river' }] })

/**
 * The body of POST /api/auth/password-reset (contract 4.7). An address that cannot exist gets the same response as any
 * other.
 */
export const RequestReset = Type.Object({
  email: KnownEmail,
}, { title: 'RequestPasswordReset', examples: [{ email: exampleUser.email }] })

/** The body of POST /api/auth/password-reset/confirm (contract 4.7). */
export const ConfirmReset = Type.Object({
  token: MailToken,
  password: NewPassword,
  keep: Type.Optional(Type.Array(Id, {
    maxItems: 100,
    description: 'The ids of ways to sign in that stay although they were added recently. The check lists them',
  })),
}, { title: 'ConfirmPasswordReset', examples: [{ token: 'the-token-of-the-link', password: exampleUser.password }] })

/** The body of POST /api/auth/password-reset/check. */
export const CheckReset = Type.Object({
  token: MailToken,
}, { title: 'CheckPasswordReset', examples: [{ token: 'the-token-of-the-link' }] })

/** The 200 response of POST /api/auth/password-reset/check: whose account it is, and what the reset removes. */
export const ResetCheck = Type.Object({
  removes: Type.Array(Type.Object({
    id: Id,
    kind: Type.Unsafe<CredentialKind>({ type: 'string', enum: credentialKinds }),
    name: Type.Union([Type.String(), Type.Null()], {
      description: 'The name of a passkey or an API key; the id of the provider of an identity',
    }),
    addedAt: Instant,
  }), { description: 'The ways to sign in that the reset removes' }),
  mayKeep: Type.Boolean({
    description: 'Whether `keep` may name passkeys, identities and the app: the address was verified before',
  }),
  email: Type.String({ description: 'The address of the account, to which the link was sent' }),
  isInvitation: Type.Boolean({ description: 'Whether an admin has invited the user' }),
  invitedBy: nullable('The name of the user who has invited; null if it is not known, or the account may not see it'),
}, { title: 'PasswordResetCheck' })

/** The body of POST /api/auth/email-verification/confirm (contract 11.3). */
export const ConfirmEmail = Type.Object({
  token: MailToken,
  password: Type.Optional(NewPassword),
}, { title: 'ConfirmEmail', examples: [{ token: 'the-token-of-the-link' }] })

/** The 202 response. It does not reveal whether a mail is sent, because that is decided after it. */
export const MailReply = Type.Object({ message: Type.String() }, {
  title: 'MailReply',
  description: 'Accepted; if the user is entitled to a link, it is mailed afterwards',
})

/**
 * Returns a password in the form that is hashed: Unicode's composed normalization form (NIST 800-63B 3.1.1.2), so that
 * it does not depend on the keyboard that has typed it.
 */
export const normalizePassword = (password: string): string => password.normalize('NFC')

/**
 * Throws `InvalidInput` if a password is the user's name or address (context-specific words of NIST 800-63B 3.1.1.2).
 */
export function rejectPersonalWords (password: string, { name, email }: { name: string, email: string }): void {
  const fold = (text: string) => toAsciiAddress(text.normalize('NFC')).toLowerCase()
  const known = [name, email, email.slice(0, email.lastIndexOf('@'))]
  if (known.some((word) => fold(word) === fold(password))) {
    throw new InvalidInput('password must not be the name or the email address')
  }
}

/** The password has appeared in a breach, so that those who try stolen passwords try it (contract 23.1). */
export class BreachedPassword extends InvalidInput {
  override readonly code = 'BREACHED_PASSWORD'

  constructor () {
    super('password has appeared in a data breach')
  }
}

/** The 400 response to a confirmation. */
export const ConfirmationErrors = Type.Object({
  ...ErrorsReply.properties,
  code: Type.Optional(Type.String({
    description: '`PASSWORD_REQUIRED` if the request must be repeated with a password, `BREACHED_PASSWORD` if with another one',
  })),
}, { title: 'ConfirmationErrors', description: ErrorsReply.description! })

/** The token is valid, but nobody has proved to have chosen the password, so the confirmation must have one. */
export class PasswordRequired extends InvalidInput {
  override readonly code = 'PASSWORD_REQUIRED'

  constructor () {
    super('password is required')
  }
}
