// A page of one of these has the origin `null`, or cannot exist.
const WITHOUT_ORIGIN = ['about:', 'blob:', 'data:', 'file:', 'ftp:', 'javascript:', 'ws:', 'wss:']

/**
 * Returns an origin in the form in which browsers send it (RFC 6454 6.2): in lower case, with an ASCII name, and
 * without the default port. Returns undefined for what is not an origin that a request can have. Apps and extensions of
 * browsers have schemes of their own, as in `capacitor://localhost`.
 */
export function normalizeOrigin (text: string): string | undefined {
  const [, scheme, host] = /^([a-z][a-z\d+.-]*:)\/\/([^\s/?#@\\*]+)$/i.exec(text) ?? []
  if (scheme === undefined || host === undefined || !URL.canParse(text)) return undefined
  if (WITHOUT_ORIGIN.includes(scheme.toLowerCase())) return undefined
  const url = new URL(text)
  // For schemes that it does not know, `URL` has no origin.
  return url.origin === 'null' ? `${url.protocol}//${url.host.toLowerCase()}` : url.origin
}

/** Returns a function that tells whether an origin is one of some, which may be written in another way. `*` is none. */
export function createOriginCheck (origins: readonly string[]): (origin: string) => boolean {
  const allowed = new Set(origins.map(normalizeOrigin).filter((origin) => origin !== undefined))
  return (origin) => allowed.has(origin) || allowed.has(normalizeOrigin(origin) ?? '')
}
