import type { Mailer } from '../../schema/options/options.ts'
import { multiplyNodeDeadlines } from '../process/deadlines.ts'
import type { Messages } from '../terminal/print.ts'
import { printsMails } from '../settings/printing.ts'
import type { Settings } from '../settings/settings.ts'

/**
 * Returns the mailer of the settings, and a function that closes its connections: a mail server, or the function
 * `mailer` of the configuration file, or one that prints. If mails are neither sent nor printed, there is no mailer.
 */
export async function openMailer (
  settings: Settings, messages: Messages
): Promise<{ mailer: Mailer | undefined, close: () => void }> {
  const { SMTP_URL, MAIL_FROM, DEADLINE_FACTOR, file } = settings
  if (SMTP_URL) {
    const { createSmtpMailer } = await import('./smtp.ts')
    return createSmtpMailer(SMTP_URL, MAIL_FROM!, multiplyNodeDeadlines(DEADLINE_FACTOR))
  }
  const printMail: Mailer = ({ to, subject, text }) => messages.print(`Mail to ${to}: ${subject}\n\n${text}`)
  return { mailer: file?.options.mailer ?? (printsMails(settings) ? printMail : undefined), close: () => {} }
}
