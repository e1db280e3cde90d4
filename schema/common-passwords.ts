import { dictionary } from '@zxcvbn-ts/language-common'

const common = new Set((dictionary['passwords-common'] as string[]).filter((password) => password.length >= 8))

/** Whether a password is among those that everybody tries first (NIST 800-63B 3.1.1.2), whatever its case. */
export function isCommonPassword (password: string): boolean {
  return common.has(password.toLowerCase())
}
