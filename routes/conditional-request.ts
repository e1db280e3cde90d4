import type { IncomingHttpHeaders } from 'node:http'

/** The validators of a resource's current version (RFC 9110 8.8). */
export interface Version {
  /** A strong entity tag, with its quotes. */
  etag: string
  lastModified: Date
}

/**
 * Evaluates the preconditions of a GET or HEAD request (RFC 9110 13.2.2): 304 if the client has the current version, 412 if a
 * precondition fails, and 200 otherwise.
 */
export function evaluateConditions (headers: IncomingHttpHeaders, version: Version): 200 | 304 | 412 {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers
  const unmodifiedSince = dateOf(headers['if-unmodified-since'])
  const modifiedSince = dateOf(headers['if-modified-since'])
  const modified = secondsOf(version.lastModified)
  if (match !== undefined ? !isListed(match, version.etag) : modified > unmodifiedSince) return 412
  // Entity tags are compared weakly here (RFC 9110 13.1.2).
  if (noneMatch !== undefined ? isListed(noneMatch.replaceAll('W/', ''), version.etag) : modified <= modifiedSince) return 304
  return 200
}

/** Returns whether a range applies, because the client has the current version or asks for any (RFC 9110 13.1.5). */
export function rangeApplies (headers: IncomingHttpHeaders, version: Version): boolean {
  const condition = headers['if-range']
  return condition === undefined || condition === version.etag || dateOf(String(condition)) === secondsOf(version.lastModified)
}

function isListed (tags: string, etag: string): boolean {
  return tags.trim() === '*' || tags.split(',').some((tag) => tag.trim() === etag)
}

// Returns NaN without a valid date, which no comparison is true for.
const dateOf = (text = ''): number => Math.floor(Date.parse(text) / 1000)

const secondsOf = (date: Date): number => Math.floor(date.getTime() / 1000)
