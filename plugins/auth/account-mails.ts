import { duration, paragraphs, type Text } from './password-mails.ts'

// No mail contains the name or another text that a user has chosen, because the service would then send any text to anyone.

/** Returns the mail with a link that confirms a sign-up. */
export const signUpMail = (link: string, seconds: number): Text => ({
  subject: 'Confirm your account',
  text: paragraphs(
    `Somebody, most likely you, signed up with this address. This link creates the account. It works once, within ${duration(seconds)}:`,
    link,
    'If it was not you, do not use the link: whoever signed up knows the password of the account. Without the link, none is created.'
  ),
})

/** Returns the mail to the owner of an address with which somebody has tried to sign up again. */
export const signUpTakenMail = (loginPage: string, forgotPage: string): Text => ({
  subject: 'You already have an account',
  text: paragraphs(
    'Somebody, most likely you, signed up with this address, but it already has an account. Nothing was changed.',
    `Log in: ${loginPage}`,
    `If you do not know the password, set a new one: ${forgotPage}`,
    'If it was not you, do nothing.'
  ),
})

/** Returns the mail with a link that verifies the address of an account. */
export const verifyEmailMail = (link: string, seconds: number): Text => ({
  subject: 'Confirm your email address',
  text: paragraphs(
    `This address belongs to an account. Confirm that it is yours with this link, which works once, within ${duration(seconds)}:`,
    link,
    'If you do not know of such an account, do nothing.'
  ),
})

/** Returns the mail to the former address of a user, with the link that restores it. */
export const emailChangedMail = (link: string): Text => ({
  subject: 'The email address of your account was changed',
  text: paragraphs(
    'Your account has another email address now.',
    'If it was not you, use this link within 7 days. It restores this address and the password from before the change, and logs everybody out:',
    link,
    'If somebody else may know that password, set a new one afterwards.'
  ),
})

/** Returns the mail to a user whose password was replaced, with the link that restores the former one (NIST 800-63B 4.6, OWASP ASVS 6.3.7). */
export const passwordChangedMail = (link: string): Text => ({
  subject: 'Your password was set',
  text: paragraphs(
    'The password of your account was set just now, and you are logged out everywhere else.',
    'If it was not you, use this link within 7 days. It restores the password from before the change, and logs everybody out:',
    link,
    'If somebody else may know that password, set a new one afterwards.'
  ),
})
