import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

/** The file of the font, which design.css looks for beside itself. */
export const FONT = 'inter.woff2'

/** What a content security policy says so that pages have the font. */
export const FONT_POLICY = "font-src 'self'"

/** The same file in the package from which the build copies it. */
export const FONT_SOURCE = '@fontsource-variable/inter/files/inter-latin-wght-normal.woff2'

/** Returns the font of all pages: Inter, with Latin letters in all weights. Others are those of the system. */
export function readFont (): Buffer {
  const shipped = new URL(FONT, import.meta.url)
  // The build copies it there.
  return readFileSync(existsSync(shipped) ? shipped : createRequire(import.meta.url).resolve(FONT_SOURCE))
}
