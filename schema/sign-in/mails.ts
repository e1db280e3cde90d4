import { Type, type Static } from '@sinclair/typebox'
import { defineError } from '../http/errors.ts'
import { exampleUser, KnownEmail, line } from '../strings/text.ts'
import { MailToken } from '../mail-links/mail-token.ts'
import { MailReply } from './passwords/passwords.ts'

/** It reveals neither which of these is the case nor whether the address has an account. */
export const InvalidLoginCode = defineError(
  'INVALID_LOGIN_CODE', 'The code is wrong, was used, has expired, or belongs to another browser', 401
)
export const EmailNotVerified = defineError('EMAIL_NOT_VERIFIED', 'The email address of this user is not verified', 409)

/** The `amr` of a user who reads the mailbox of the account. RFC 8176 has no name for it (docs/decisions). */
export const EMAIL = 'email'

/** The code of a mail. It is shown in groups, so spaces and hyphens do not matter. */
export const MailCode = line({ maxLength: 64, description: 'The eight digits in the mail' })

const LoginId = line({ maxLength: 1024, description: 'From the response to the request, for clients without cookies' })

/** The body of POST /api/auth/login/mail (contract 16.6). An address that cannot exist gets the same response. */
export const RequestLoginMail = Type.Object({
  email: KnownEmail,
  cookie: Type.Optional(Type.Boolean({
    description: 'False for a client that keeps no cookies: the response has `loginId` instead of a cookie',
  })),
}, { title: 'RequestLoginMail', examples: [{ email: exampleUser.email }] })

export type RequestLoginMail = Static<typeof RequestLoginMail>

/** The 202 response. It does not reveal whether a mail is sent, because that is decided after it. */
export const LoginMailReply = Type.Object({
  ...MailReply.properties,
  loginId: Type.Optional(Type.String({
    description: 'What the code of the mail has to be sent with; only with `cookie: false`',
  })),
}, {
  title: 'LoginMailReply', description: 'Accepted; if the address has an account, a link and a code are mailed afterwards',
})

/** The body of POST /api/auth/login/mail/check. */
export const CheckLoginMail = Type.Object({
  token: MailToken,
  loginId: Type.Optional(LoginId),
}, { title: 'CheckLoginMail', examples: [{ token: 'the-token-of-the-link' }] })

/** The response of POST /api/auth/login/mail/check: what whoever uses the link has to know before. */
export const LoginMailAccount = Type.Object({
  email: Type.String({ description: 'The address of the account that the link logs in to' }),
  requestedHere: Type.Boolean({ description: 'Whether this browser or client has requested the mail' }),
  removes: Type.Boolean({
    description: 'Whether the login removes the password and the other ways to sign in, because they were set up ' +
      'before anybody had verified the address',
  }),
}, { title: 'LoginMailAccount', description: 'The link is valid, and stays so' })

/** The body of POST /api/auth/login/mail/confirm (contract 16.6). */
export const ConfirmLoginMail = Type.Object({
  token: Type.Optional(MailToken),
  code: Type.Optional(MailCode),
  loginId: Type.Optional(LoginId),
}, {
  title: 'ConfirmLoginMail',
  description: 'The token of the link, or the code; without the cookie of the request, the code needs `loginId`',
  examples: [{ code: '12345678' }],
})

/** What authenticates the user of a session once more by a mail. */
export const StepUpMail = Type.Object({
  id: line({ maxLength: 1024, description: 'From the response of POST /api/auth/step-up/mail' }),
  code: MailCode,
}, { description: 'The code of a mail, for users without a second factor' })

/** The response of POST /api/auth/step-up/mail. */
export const StepUpMailReply = Type.Object({
  ...MailReply.properties,
  id: Type.String({ description: 'What the code of the mail has to be sent with' }),
}, { title: 'StepUpMailReply', description: 'Accepted; a code is on its way to the address of the user' })
