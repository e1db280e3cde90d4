/** How strong a password is, from 0 to 4, and why it is rejected, as far as that is known before it is sent. */
export interface PasswordStrength {
  level: 0 | 1 | 2 | 3 | 4
  /** The text of what is wrong. */
  problem?: 'strengthShort' | 'longPassword' | 'personalPassword' | 'commonPassword'
  /** How many characters are missing. */
  missing?: number
}

/**
 * Estimates how strong a new password is. The rules that reject one are those of the service (contract 1.8), as far as
 * the list of common passwords is given; the level is an estimate by length, by how many characters differ, and by runs
 * such as `aaa` and `1234`, which add nothing. Pages send this function to browsers as it stands, so it uses nothing
 * from outside.
 */
export function passwordStrength (
  password: string, { personal, common }: { personal: readonly string[], common: ReadonlySet<string> }
): PasswordStrength {
  const normal = password.normalize('NFC')
  const characters = Array.from(normal)
  const fold = (text: string) => text.normalize('NFC').toLowerCase()
  if (characters.length < 8) return { level: 0, problem: 'strengthShort', missing: 8 - characters.length }
  if (characters.length > 256) return { level: 0, problem: 'longPassword' }
  const words = personal.flatMap((word) => [word, word.includes('@') ? word.slice(0, word.lastIndexOf('@')) : word])
  if (words.some((word) => fold(word) === fold(normal))) return { level: 0, problem: 'personalPassword' }
  if (common.has(fold(normal))) return { level: 0, problem: 'commonPassword' }
  // What follows from the character before adds little.
  const codes = characters.map((character) => character.toLowerCase().codePointAt(0)!)
  const surprising = codes.filter((code, index) => index === 0 || Math.abs(code - codes[index - 1]!) > 1).length
  const distinct = new Set(codes).size
  const kindOf = (character: string) => {
    if (character.codePointAt(0)! > 127) return 'other script'
    if (/\d/.test(character)) return 'digit'
    if (!/[a-z]/i.test(character)) return 'sign'
    return character === character.toLowerCase() ? 'small' : 'capital'
  }
  const classes = new Set(characters.map(kindOf)).size
  const parts = words.flatMap((word) => fold(word).split(/[^\p{L}\p{N}]+/u)).filter((part) => part.length > 3)
  const known = Math.max(0, ...parts.filter((part) => fold(normal).includes(part)).map((part) => part.length))
  // Common passwords with something before or after them are tried first, too.
  const base = fold(normal).replace(/^[^\p{L}]+|[^\p{L}]+$/gu, '')
  const isVariant = common.has(base)
  const score = Math.min(surprising, distinct * 2) - known + 1.5 * classes - (isVariant ? 8 : 0)
  return { level: score < 9 ? 1 : score < 13 ? 2 : score < 17 ? 3 : 4 }
}
