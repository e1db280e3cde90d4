import type { Mail } from '../../schema/options.ts'

export type Text = Pick<Mail, 'subject' | 'text'>

const UNITS = [[86400, 'day'], [3600, 'hour'], [60, 'minute']] as const

// No mail contains the user's name, because a name can be any text, which the service would then send.

/** Returns the mail with a link to reset a password. */
export const resetMail = (link: string, seconds: number): Text => ({
  subject: 'Set a new password',
  text: paragraphs(
    `Somebody, most likely you, requested a link to set a new password for your account. It works once, within ${duration(seconds)}:`,
    link,
    'If it was not you, do nothing. Your password stays as it is.'
  ),
})

/** Returns the mail that invites a user, whose account an admin has created, to set a password. */
export const invitationMail = (link: string, seconds: number): Text => ({
  subject: 'You have an account: set its password',
  text: paragraphs(
    `An account was created for you. Set its password with this link, which works once, within ${duration(seconds)}:`,
    link,
    'Then log in with this address and that password.'
  ),
})

/** Returns the mail to a user whose password was set, maybe by somebody else (NIST 800-63B 4.6, OWASP ASVS 6.3.7). */
export const changedMail = (page: string): Text => ({
  subject: 'Your password was set',
  text: paragraphs(
    'The password of your account was set just now, and you are logged out everywhere else.',
    `If it was not you, request a link to set a new password at once. Such links lead to ${page}`
  ),
})

export const paragraphs = (...texts: string[]): string => `${texts.join('\n\n')}\n`

// The largest unit that needs no fraction. Seconds are rounded down to minutes, so that the mail does not promise too much.
export function duration (seconds: number): string {
  const minutes = seconds - seconds % 60
  const [unit, name] = UNITS.find(([unit]) => minutes % unit === 0)!
  return `${minutes / unit} ${name}${minutes === unit ? '' : 's'}`
}
