import type { Mail } from '../../schema/options.ts'

type Text = Pick<Mail, 'subject' | 'text'>

const UNITS = [[86400, 'day'], [3600, 'hour'], [60, 'minute']] as const

// No name of the user in any of them: whoever chooses a name would write what we send.

/** For somebody who has forgotten a password, or says so. */
export const resetMail = (link: string, seconds: number): Text => ({
  subject: 'Set a new password',
  text: paragraphs(
    `Somebody, most likely you, asked for a link to set a new password for your account. It works once, within ${duration(seconds)}:`,
    link,
    'If it was not you, do nothing, and your password stays as it is.'
  ),
})

/** For somebody whom an admin made an account. */
export const invitationMail = (link: string, seconds: number): Text => ({
  subject: 'You have an account: set its password',
  text: paragraphs(
    `An account was made for you. With this link, which works once, within ${duration(seconds)}, you set its password:`,
    link,
    'Then you log in with this address and that password.'
  ),
})

/** For somebody whose password was set: it may not have been their doing (NIST 800-63B 4.6, OWASP ASVS 6.3.7). */
export const changedMail = (page: string): Text => ({
  subject: 'Your password was set',
  text: paragraphs(
    'The password of your account was set just now, and you are logged out everywhere else.',
    `If it was not you, ask for a link to set a new one at once. Such links lead to ${page}`
  ),
})

const paragraphs = (...texts: string[]): string => `${texts.join('\n\n')}\n`

// In the largest unit that says it without a fraction; of seconds the rest is not promised.
function duration (seconds: number): string {
  const minutes = seconds - seconds % 60
  const [unit, name] = UNITS.find(([unit]) => minutes % unit === 0)!
  return `${minutes / unit} ${name}${minutes === unit ? '' : 's'}`
}
