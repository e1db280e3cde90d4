// Characters without a glyph: white space, what Unicode says to ignore (zero-width and bidirectional marks, Hangul
// fillers, tags), and those that are blank nevertheless: an empty braille pattern, marks of annotations, a musical
// symbol, and controls of hieroglyphs.
const INVISIBLE = /^[\p{Z}\s\p{DI}\p{NChar}\u2800\ufff9-\ufffb\u{1d159}\u{13430}-\u{1343f}]*$/u

/** Returns whether nothing of a text can be seen. Control characters, which texts must not have, do not count. */
export const isBlank = (text: string): boolean => INVISIBLE.test(text)
