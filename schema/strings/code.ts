/**
 * Returns a code as it was issued, however somebody has typed or pasted it: in full width or with the digits of another
 * script, and with spaces, hyphens and marks of direction between its characters.
 */
export const foldCode = (given: string): string =>
  given.normalize('NFKC').replaceAll(/\p{Nd}/gu, toAsciiDigit).replaceAll(/[\s\p{Pd}\p{Cf}\u2212]/gu, '')

// The decimal digits of a script follow each other, from zero to nine (Unicode 4.6), and those of two scripts may be
// neighbours.
function toAsciiDigit (digit: string): string {
  const place = digit.codePointAt(0)!
  let first = place
  while (/\p{Nd}/u.test(String.fromCodePoint(first - 1))) first--
  return `${(place - first) % 10}`
}
