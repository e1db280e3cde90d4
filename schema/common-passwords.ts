import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

let common: ReadonlySet<string> | undefined

/** Whether a password is among those that everybody tries first (NIST 800-63B 3.1.1.2), whatever its case. */
export function isCommonPassword (password: string): boolean {
  common ??= readCommon()
  return common.has(password.toLowerCase())
}

// When the first password is set: most nodes never need the list, and it is large.
function readCommon (): ReadonlySet<string> {
  const { dictionary } = require('@zxcvbn-ts/language-common') as typeof import('@zxcvbn-ts/language-common')
  return new Set((dictionary['passwords-common'] as string[]).filter((password) => password.length >= 8))
}
