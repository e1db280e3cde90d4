/** Returns text without characters that a terminal would interpret, or that change the direction of what follows. */
export function printable (text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\uFFFD')
}
