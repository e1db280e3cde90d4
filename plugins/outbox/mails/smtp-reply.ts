/** What nodemailer adds to an error, and other mailers may. */
interface SmtpError {
  readonly responseCode?: unknown
  /** The whole reply. */
  readonly response?: unknown
  /** The command that was refused. */
  readonly command?: unknown
}

// RFC 5321 4.2.3, without the codes that servers also use for senders and clients that they do not accept, such as 554.
const ABOUT_RECIPIENT = [550, 551, 552, 553, 556]
const TOO_LARGE = 552
// RFC 3463: the address or the mailbox of the recipient, but not the address of the sender.
const RECIPIENT = /^5\.(?:1\.(?![78]$)|2\.)/
// RFC 3463: the content, or its size.
const CONTENT = /^5\.(?:6\.|3\.4$)/

/**
 * Returns whether an error is the reply of a mail server that will never accept this mail: because of its recipient or
 * its content. All other refusals are about the configuration of the sender or the server, such as a login, a sender, a
 * blocked client or a relay, and end when somebody mends it. Many servers send those only in reply to `RCPT TO`, so
 * that the enhanced status code counts if there is one.
 */
export function isRefusedForGood (error: unknown): boolean {
  const { responseCode, response, command = 'RCPT TO' } = (error ?? {}) as SmtpError
  const code = Number(responseCode)
  if (!(code >= 500 && code < 600)) return false
  const [, status] = /^5\d\d[ -](5\.\d{1,3}\.\d{1,3})(?!\S)/.exec(`${response}`) ?? []
  if (command !== 'RCPT TO' && command !== 'DATA') return false
  if (status === undefined) return command === 'DATA' ? code === TOO_LARGE : ABOUT_RECIPIENT.includes(code)
  return RECIPIENT.test(status) || (command === 'DATA' && CONTENT.test(status))
}
