import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import type { Shell } from '../terminal/shell.ts'

/** The option of commands that set a password, with its line for `--help`. */
export const passwordOption = { 'password-stdin': { type: 'boolean' } } as const
export const PASSWORD_HELP = 'read the password from standard input; by default a random one is created and printed'

/**
 * Returns the password for a user: the one on standard input, or a random one. `shown` is what may be printed: null for
 * a password that was given.
 */
export async function readPassword (
  isGiven: unknown, { stdin }: Pick<Shell, 'stdin'>
): Promise<{ password: string, shown: string | null }> {
  if (isGiven) return { password: (await text(stdin)).replace(/\r?\n$/, ''), shown: null }
  const password = randomBytes(15).toString('base64url')
  return { password, shown: password }
}
