import { Type } from '@sinclair/typebox'
import { defineError, InvalidInput } from '../http/errors.ts'
import { line } from '../strings/text.ts'

export const EmailVerified = defineError('EMAIL_VERIFIED', 'The email address of this user is verified already', 409)

/** A link would change the address of an account that has an owner, who is not known to have opened it. */
export const OwnSessionRequired = defineError(
  'LOGIN_REQUIRED', 'Log in to this account in this browser first: the link changes its email address', 403
)

/** The token of a link in a mail. */
export const MailToken = line({ maxLength: 1024, description: 'The token in the link of the mail, after `#token=`' })

/** The body of a request that a token from a mail permits, and that needs nothing else. */
export const UseToken = Type.Object(
  { token: MailToken }, { title: 'UseToken', examples: [{ token: 'the-token-of-the-link' }] }
)

/**
 * Returns the error for a token that is unknown, has expired or was used. It does not reveal which of these is the
 * case.
 */
export const invalidMailToken = () => new InvalidInput('token is invalid or has expired')
