import { Readable } from 'node:stream'
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { PreconditionFailed } from '../../schema/http/errors.ts'

/**
 * The value of `Cache-Control` of records and pages (contract 10.1): only the client may store them, and revalidates
 * them at each use.
 */
export const REVALIDATED = 'private, no-cache'

/** The validators of a resource's current version (RFC 9110 8.8). */
export interface Validators {
  /** A strong entity tag, with its quotes. */
  etag: string
  lastModified?: Date
}

/**
 * Evaluates the preconditions of a GET or HEAD request (RFC 9110 13.2.2): 304 if the client has the current version,
 * 412 if a precondition fails, and 200 otherwise.
 */
export function evaluateConditions (headers: IncomingHttpHeaders, { etag, lastModified }: Validators): 200 | 304 | 412 {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers
  const modified = lastModified ? secondsOf(lastModified) : NaN
  if (match !== undefined ? !isListed(match, etag) : modified > dateOf(headers['if-unmodified-since'])) return 412
  // Entity tags are compared weakly here (RFC 9110 13.1.2).
  if (
    noneMatch !== undefined ? isListed(noneMatch, etag, 'weakly') : modified <= dateOf(headers['if-modified-since'])
  ) {
    return 304
  }
  return 200
}

/**
 * Evaluates the preconditions of a request for a record or page, and sets the headers of the response. Returns whether
 * the client has it already, in which case `sendNotModified` sends the response. Throws `PreconditionFailed`.
 */
export function revalidate ({ headers }: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  const status = evaluateConditions(headers, { etag })
  if (status === 412) throw new PreconditionFailed()
  reply.header('etag', etag).header('cache-control', REVALIDATED)
  return status === 304
}

/** Sends a 304 response. It has the headers that are set, and no body. */
export function sendNotModified ({ method }: FastifyRequest, reply: FastifyReply): FastifyReply {
  // Without a stream, Fastify would add `Content-Length: 0` to the response to HEAD, as if that were the length of the
  // representation.
  return reply.code(304).send(method === 'HEAD' ? Readable.from([]) : undefined)
}

/** Returns whether a range applies, because the client has the current version or asks for any (RFC 9110 13.1.5). */
export function rangeApplies (headers: IncomingHttpHeaders, validators: Required<Validators>): boolean {
  const condition = headers['if-range']
  return condition === undefined || condition === validators.etag ||
    dateOf(String(condition)) === secondsOf(validators.lastModified)
}

// Tags of Usher have no commas, so a tag that is cut at a comma is not one of them. Malformed tags are ignored: they
// match nothing.
function isListed (tags: string, etag: string, comparison?: 'weakly'): boolean {
  if (tags.trim() === '*') return true
  return tags.split(',').some((part) => {
    const tag = part.trim()
    return tag === etag || (comparison === 'weakly' && tag === `W/${etag}`)
  })
}

// Returns NaN without a valid date (RFC 9110 5.6.7), which no comparison is true for.
const dateOf = (text = ''): number =>
  /^[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d/.test(text) ? Math.floor(Date.parse(text) / 1000) : NaN

const secondsOf = (date: Date): number => Math.floor(date.getTime() / 1000)
