import { duration, paragraphs, type Text } from './password-mails.ts'

// No mail contains the name or another text that a user has chosen, because the service would then send any text to anyone.

/** Returns the mail with a link that confirms a sign-up. */
export const signUpMail = (link: string, seconds: number): Text => ({
  subject: 'Confirm your account',
  text: paragraphs(
    `Somebody, most likely you, signed up with this address. This link creates the account. It works once, within ${duration(seconds)}:`,
    link,
    'If it was not you, do nothing. No account is created then.'
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
