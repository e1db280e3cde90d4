import { readFileSync } from 'node:fs'

let common: Buffer | undefined

/** Returns whether a password is on the list of common passwords (NIST 800-63B 3.1.1.2), regardless of case. */
export function isCommonPassword (password: string): boolean {
  const line = password.toLowerCase()
  common ??= readCommon()
  // As bytes, because Node.js 24 aborts if a text that it searches for in a buffer has lone surrogates.
  return !line.includes('\n') && common.includes(Buffer.from(`\n${line}\n`))
}

/** Returns the most common passwords, in lower case. */
export const mostCommonPasswords = (count: number): string[] =>
  readFileSync(new URL('common-passwords.txt', import.meta.url), 'utf8').split('\n', count)

// The list is read when the first password is set, because many nodes never need it. It is searched as bytes: a set of
// its texts would take eight times as much memory, and passwords are set too rarely for that.
// `common-passwords.LICENSE` says where it is from.
function readCommon (): Buffer {
  const lines = readFileSync(new URL('common-passwords.txt', import.meta.url))
  return Buffer.concat([Buffer.from('\n'), lines, Buffer.from('\n')])
}
