import type { Mailer } from '../../schema/options/options.ts'
import { multiplyNodeDeadlines } from '../process/deadlines.ts'
import { print } from '../terminal/print.ts'
import type { Settings } from '../settings/settings.ts'

/**
 * Returns whether passwords and mails may be printed. Other output than a terminal usually ends up in a log, which
 * other people read.
 */
export function printsSecrets (
  { PRINT_SECRETS = process.stderr.isTTY === true }: Pick<Settings, 'PRINT_SECRETS'>
): boolean {
  return PRINT_SECRETS
}

/**
 * Returns the mailer of the settings, and a function that closes its connections: without a mail server, mails are
 * printed to the terminal. In production they are only printed if `PRINT_SECRETS` is true. If mails are neither sent
 * nor printed, there is no mailer.
 */
export async function openMailer (settings: Settings): Promise<{ mailer: Mailer | undefined, close: () => void }> {
  const { SMTP_URL, MAIL_FROM, NODE_ENV, PRINT_SECRETS, DEADLINE_FACTOR } = settings
  if (SMTP_URL) {
    const { createSmtpMailer } = await import('./smtp.ts')
    return createSmtpMailer(SMTP_URL, MAIL_FROM!, multiplyNodeDeadlines(DEADLINE_FACTOR))
  }
  const isPrinted = PRINT_SECRETS || (NODE_ENV !== 'production' && printsSecrets(settings))
  return {
    mailer: isPrinted ? ({ to, subject, text }) => print(`Mail to ${to}: ${subject}\n\n${text}`) : undefined,
    close: () => {},
  }
}
