/** What a public URL must be, as the end of a sentence. */
export const PUBLIC_URL_FORMAT =
  'an address such as https://api.example.com, or https://example.com/accounts if a proxy removes the path'

/**
 * Returns whether a text can be a public URL: an origin, and perhaps a fixed path, which becomes part of headers,
 * cookies and links.
 */
export function isPublicUrl (text: string): boolean {
  return /^https?:\/\/[^/@?#\\\s]+(\/[\w.~-]+)*\/*$/.test(text) && URL.canParse(text) && !/(^|\/)\.\.?(\/|$)/.test(text)
}

/** Returns a public URL without slashes at its end, so that paths can be appended to it. */
export const withoutSlash = (publicUrl: string): string => publicUrl.replace(/\/+$/, '')

/** Returns the path of a public URL, without a slash at its end. Requests reach Usher without it. */
export const pathOf = (publicUrl: string | undefined): string =>
  publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '')

/**
 * Returns the address of a mount, without a slash at its end: absolute if there is a public URL.
 * @param origin what stands for the public URL if there is none
 */
export const baseUrlOf = (
  { publicUrl, prefix }: { publicUrl?: string | undefined, prefix: string }, origin = ''
): string => `${publicUrl ?? origin}${prefix}`
