import cors, { type FastifyCorsOptions } from '@fastify/cors'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { createOriginCheck } from '../../schema/http/origin.ts'

// All headers of docs/endpoints.md, which a test compares. From another origin, a browser sends only those that the
// response to the preflight request names. Many clients pass on the context of a trace.
const REQUEST_HEADERS = [
  'Accept', 'Authorization', 'Content-Type', 'Idempotency-Key', 'If-Match', 'If-Modified-Since', 'If-None-Match',
  'If-Range', 'If-Unmodified-Since', 'Last-Event-ID', 'Prefer', 'Range', 'traceparent', 'tracestate', 'Tus-Resumable',
  'Upload-Checksum', 'Upload-Length', 'Upload-Metadata', 'Upload-Offset', 'X-Request-Id',
]
// Scripts of other origins can read no others, except for those that every response may show, such as `Cache-Control`.
const RESPONSE_HEADERS = [
  'Accept-Encoding', 'Accept-Patch', 'Accept-Ranges', 'Allow', 'Content-Disposition', 'Content-Location',
  'Content-Range', 'ETag', 'Idempotency-Replayed', 'Link', 'Location', 'Login-Required', 'Password-Required',
  'Preference-Applied',
  'Retry-After', 'Tus-Checksum-Algorithm', 'Tus-Extension', 'Tus-Max-Size', 'Tus-Resumable', 'Tus-Version',
  'Upload-Expires', 'Upload-Length', 'Upload-Metadata', 'Upload-Offset', 'Vary', 'WWW-Authenticate', 'X-Request-Id',
]

/** Adds CORS for pages of some origins, or of any with `*`. */
export default fp<{ origins: readonly string[] }>(async function crossOrigin (app, { origins }) {
  const any = origins.includes('*')
  const isNamed = createOriginCheck(origins)
  const options: FastifyCorsOptions = {
    // A browser compares this with what it has sent.
    origin: any ? '*' : (origin, done) => done(null, origin !== undefined && isNamed(origin) ? origin : []),
    // Only origins that are named may use the session cookie.
    credentials: !any,
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: REQUEST_HEADERS,
    exposedHeaders: RESPONSE_HEADERS,
    maxAge: 7200,
  }
  const plain = { ...options, preflight: false }
  await app.register(cors, {
    // An OPTIONS request that is not a preflight is handled like any other method. A preflight of another origin goes
    // on to the handlers for unknown paths and methods, which reject it.
    delegator: ({ headers }: FastifyRequest, done: (error: null, options: FastifyCorsOptions) => void) => {
      const { origin, 'access-control-request-method': method } = headers
      done(null, origin && method && (any || isNamed(origin)) ? options : plain)
    },
  })
}, { name: 'usher-cors' })
