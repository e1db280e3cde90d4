import { Type, type Static } from '@sinclair/typebox'
import { Email, exampleUser, Name, NewPassword } from '../text/text.ts'

/** The body of POST /api/auth/sign-up (contract 11.2). */
export const SignUp = Type.Object({
  name: Name,
  email: Email,
  password: NewPassword,
}, { title: 'SignUp', examples: [exampleUser] })

export type SignUp = Static<typeof SignUp>
