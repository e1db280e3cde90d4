import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { UnsupportedContentCoding } from '../../schema/http/errors.ts'

/** Returns whether the body of a request has a content coding, such as gzip (RFC 9110 8.4). `identity` is none. */
export function isEncoded ({ 'content-encoding': codings }: IncomingHttpHeaders): boolean {
  const isNone = (coding: string) => ['', 'identity'].includes(coding.trim().toLowerCase())
  return codings !== undefined && !codings.split(',').every(isNone)
}

/**
 * Returns `UnsupportedContentCoding` if the body of a request has a content coding, because Usher decodes none. A
 * hook of the host may have: then `payload` is another stream than the request.
 */
export function rejectionOfCoding ({ headers, raw }: FastifyRequest, payload: Readable): Error | null {
  return payload === raw && isEncoded(headers) ? new UnsupportedContentCoding() : null
}
