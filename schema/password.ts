import { Type } from '@sinclair/typebox'
import { InvalidInput } from './errors.ts'
import { exampleUser, line, NewPassword, Password } from './text.ts'

/** PUT /api/auth/password (contract 4.6). */
export const ChangePassword = Type.Object({
  currentPassword: Password,
  password: NewPassword,
}, { title: 'ChangePassword', examples: [{ currentPassword: exampleUser.password, password: 'quiet lantern river' }] })

/** POST /api/auth/password-reset (contract 4.7). An address that cannot exist is answered like any other. */
export const RequestReset = Type.Object({
  email: line({ trim: true, maxLength: 1024 }),
}, { title: 'RequestPasswordReset', examples: [{ email: exampleUser.email }] })

/** POST /api/auth/password-reset/confirm (contract 4.7). */
export const ConfirmReset = Type.Object({
  token: line({ maxLength: 1024, description: 'What follows `#token=` in the link of the mail' }),
  password: NewPassword,
}, { title: 'ConfirmPasswordReset', examples: [{ token: 'the-token-of-the-link', password: exampleUser.password }] })

/** A 202: a mail goes out, or not, after the answer. */
export const MailReply = Type.Object({ message: Type.String() }, { title: 'MailReply', description: 'Accepted; what is to be mailed is mailed' })

/** A token that is unknown, expired, used up or another's: one answer for all of them. */
export const invalidPasswordToken = () => new InvalidInput('token is invalid or has expired')

/** Throws `InvalidInput` for a password that anybody who knows the user tries first (NIST 800-63B 3.1.1.2: context-specific words). */
export function refuseOwnWords (password: string, { name, email }: { name: string, email: string }): void {
  const known = [name, email, email.slice(0, email.lastIndexOf('@'))]
  if (known.some((word) => word.toLowerCase() === password.toLowerCase())) throw new InvalidInput('password must not be the name or the email address')
}
