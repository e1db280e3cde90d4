import Negotiator from 'negotiator'

// These are compared with `Accept` as they are sent, so that a client may ask for the charset or leave it out.
const CHARSET = '; charset=utf-8'

// Not in RFC 9110, but Java and older clients send `*` for `*/*`.
const WILDCARD = /(?<=^|,)\s*\*\s*(?=[;,]|$)/g

/** Returns the media types that a client accepts, such as `text/html` or `image/*`, the preferred one first. */
export const acceptedTypes = (accept: string | undefined): string[] => negotiatorOf(accept).mediaTypes()

/**
 * Returns which of the media types a client prefers (RFC 9110 12.5.1), or undefined if it accepts none of them. Of
 * types that it likes equally, it is the first one in `Accept`, and then the first one in `types`.
 */
export function preferredType<Type extends string> (
  accept: string | undefined, types: readonly Type[]
): Type | undefined {
  const found = negotiatorOf(accept).mediaType(types.map((type) => type + CHARSET))
  return found?.slice(0, -CHARSET.length) as Type | undefined
}

const negotiatorOf = (accept: string | undefined) =>
  new Negotiator({ headers: { accept: accept?.replaceAll(WILDCARD, '*/*') } })
