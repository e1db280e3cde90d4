import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

let common: ReadonlySet<string> | undefined

/** Returns whether a password is on the list of common passwords (NIST 800-63B 3.1.1.2), regardless of case. */
export function isCommonPassword (password: string): boolean {
  common ??= readCommon()
  return common.has(password.toLowerCase())
}

// The list is large and most nodes never need it, so it is loaded when the first password is set.
function readCommon (): ReadonlySet<string> {
  const { dictionary } = require('@zxcvbn-ts/language-common') as typeof import('@zxcvbn-ts/language-common')
  return new Set((dictionary['passwords-common'] as string[]).filter((password) => password.length >= 8))
}
