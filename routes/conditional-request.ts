import type { IncomingHttpHeaders } from 'node:http'

/** The validators of a resource's current version (RFC 9110 8.8). */
export interface Validators {
  /** A strong entity tag, with its quotes. */
  etag: string
  lastModified: Date
}

/**
 * Evaluates the preconditions of a GET or HEAD request (RFC 9110 13.2.2): 304 if the client has the current version, 412 if a
 * precondition fails, and 200 otherwise.
 */
export function evaluateConditions (headers: IncomingHttpHeaders, validators: Validators): 200 | 304 | 412 {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers
  const unmodifiedSince = dateOf(headers['if-unmodified-since'])
  const modifiedSince = dateOf(headers['if-modified-since'])
  const modified = secondsOf(validators.lastModified)
  if (match !== undefined ? !isListed(match, validators.etag) : modified > unmodifiedSince) return 412
  // Entity tags are compared weakly here (RFC 9110 13.1.2).
  if (noneMatch !== undefined ? isListed(noneMatch.replaceAll('W/', ''), validators.etag) : modified <= modifiedSince) return 304
  return 200
}

/** Returns whether a range applies, because the client has the current version or asks for any (RFC 9110 13.1.5). */
export function rangeApplies (headers: IncomingHttpHeaders, validators: Validators): boolean {
  const condition = headers['if-range']
  return condition === undefined || condition === validators.etag || dateOf(String(condition)) === secondsOf(validators.lastModified)
}

function isListed (tags: string, etag: string): boolean {
  return tags.trim() === '*' || tags.split(',').some((tag) => tag.trim() === etag)
}

// Returns NaN without a valid date (RFC 9110 5.6.7), which no comparison is true for.
const dateOf = (text = ''): number => /^[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d/.test(text) ? Math.floor(Date.parse(text) / 1000) : NaN

const secondsOf = (date: Date): number => Math.floor(date.getTime() / 1000)
