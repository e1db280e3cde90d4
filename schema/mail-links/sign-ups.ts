import { Type, type Static } from '@sinclair/typebox'
import { exampleUser, line } from '../strings/text.ts'
import { inputsOf } from '../users/members.ts'
import { MailToken } from './mail-token.ts'
import { MailReply } from '../sign-in/passwords/passwords.ts'

const SignUpId = line({
  maxLength: 1024,
  description: 'From the response to the sign-up, for clients without cookies',
})

/** The body of POST /api/auth/sign-up (contract 11.2). */
export const SignUp = Type.Object({
  ...inputsOf('signUp'),
  cookie: Type.Optional(Type.Boolean({
    description: 'False for a client that keeps no cookies: the response has `signUpId` instead of a cookie',
  })),
}, {
  title: 'SignUp',
  examples: [{ name: exampleUser.name, email: exampleUser.email, password: exampleUser.password }],
})

export type SignUp = Static<typeof SignUp>

/** The 202 response. It does not reveal whether the address has an account. */
export const SignUpReply = Type.Object({
  ...MailReply.properties,
  signUpId: Type.Optional(Type.String({
    description: 'What proves to the confirmation that this client has chosen the password; only with `cookie: false`',
  })),
}, {
  title: 'SignUpReply',
  description: 'Accepted; what happens depends on the address, and only its mailbox learns it',
})

/** The body of POST /api/auth/sign-up/check. */
export const CheckSignUp = Type.Object({
  token: MailToken,
  signUpId: Type.Optional(SignUpId),
}, { title: 'CheckSignUp', examples: [{ token: 'the-token-of-the-link' }] })

/** The 200 response. */
export const SignUpCheck = Type.Object({
  email: Type.String({ description: 'The address of the account, to which the link was sent' }),
}, { title: 'SignUpCheck' })

/** The body of POST /api/auth/sign-up/confirm (contract 11.2). What it has replaces what was sent with the sign-up. */
export const ConfirmSignUp = Type.Object({
  token: MailToken,
  signUpId: Type.Optional(SignUpId),
  logIn: Type.Optional(Type.Boolean({
    description: 'Whether the response sets the cookie of a session, as a login with the password does',
  })),
  ...Type.Partial(Type.Omit(Type.Object(inputsOf('signUp')), ['email'])).properties,
}, { title: 'ConfirmSignUp', examples: [{ token: 'the-token-of-the-link', password: exampleUser.password }] })

export type ConfirmSignUp = Static<typeof ConfirmSignUp>
