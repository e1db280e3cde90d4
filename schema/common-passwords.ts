import { readFileSync } from 'node:fs'

let common: ReadonlySet<string> | undefined

/** Returns whether a password is on the list of common passwords (NIST 800-63B 3.1.1.2), regardless of case. */
export function isCommonPassword (password: string): boolean {
  common ??= readCommon()
  return common.has(password.toLowerCase())
}

// The list is read when the first password is set, because many nodes never need it. `common-passwords.LICENSE` says where it is from.
function readCommon (): ReadonlySet<string> {
  return new Set(readFileSync(new URL('common-passwords.txt', import.meta.url), 'utf8').split('\n'))
}
