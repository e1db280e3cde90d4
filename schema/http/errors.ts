import createError from '@fastify/error'

/**
 * The base class of the error catalogue: every failure that a response can report. Their messages may be sent to
 * clients. `plugins/http/errors.ts` formats them as `{ error, code }` (contract 1.3), the GraphQL error formatter as
 * `errors: [{ message, extensions: { code } }]` (contract 7.3).
 */
export class UsherError extends Error {}

/**
 * Defines an error of the catalogue: its stable code, its message and its status. Errors of a resource are defined with
 * its schema.
 */
export const defineError = <Code extends string> (code: Code, message: string, status: number) =>
  createError(code, message, status, UsherError as ErrorConstructor)

export const Forbidden = defineError('FORBIDDEN', 'You may not do this', 403)
export const OriginNotAllowed = defineError('ORIGIN_NOT_ALLOWED', 'Pages of this origin may not send this request', 403)

export const NotFound = defineError('NOT_FOUND', 'Not found', 404)

export const MethodNotAllowed = defineError('METHOD_NOT_ALLOWED', '%s is not allowed here', 405)
export const NotAcceptable = defineError(
  'NOT_ACCEPTABLE', 'None of the accepted media types is available. Available: %s', 406
)

export const BodyStalled = defineError('BODY_STALLED', 'The rest of the request body did not arrive in time', 408)

export const PreconditionFailed = defineError(
  'PRECONDITION_FAILED', 'The resource is not in the state that the request expects', 412
)
export const PayloadTooLarge = defineError('PAYLOAD_TOO_LARGE', 'The request body is too large', 413)
export const UnsupportedMediaType = defineError('UNSUPPORTED_MEDIA_TYPE', 'The content type must be %s', 415)
export const UnsupportedContentCoding =
  defineError('UNSUPPORTED_CONTENT_CODING', 'The body must not be compressed or encoded otherwise', 415)
export const RangeNotSatisfiable = defineError('RANGE_NOT_SATISFIABLE', 'The range is beyond the end', 416)

/** A limit is exceeded. `retryAfter` is the number of seconds after which the client may try again, at least 1. */
export class TooManyRequests extends defineError<string>(
  'TOO_MANY_REQUESTS', 'Too many attempts, try again later', 429
) {
  readonly retryAfter: number

  constructor (retryAfter: number) {
    super()
    this.retryAfter = Math.max(1, Math.ceil(retryAfter))
  }
}

export const ExpectationFailed = defineError(
  'EXPECTATION_FAILED', 'The only supported expectation is 100-continue', 417
)

/**
 * The client disconnected before the response, so only the log shows this error. nginx introduced the status 499 for
 * it.
 */
export const ClientDisconnected = defineError('CLIENT_DISCONNECTED', 'The client has disconnected', 499)

export const InternalError = defineError('INTERNAL_ERROR', 'The server failed', 500)
export const DatabaseUnavailable = defineError('DATABASE_UNAVAILABLE', 'The database is unavailable, try again', 503)
export const Overloaded = defineError('OVERLOADED', 'The server is busy, try again', 503)

/** The code of an invalid input, if its problems have no other. Only GraphQL shows it. */
export const INVALID_INPUT = 'INVALID_INPUT'

/** Returns whether an error is temporary: the database is unavailable or the node overloaded. */
export function isOutage (error: unknown): error is Error {
  return error instanceof DatabaseUnavailable || error instanceof Overloaded
}

export const TooManyConnections =
  defineError('TOO_MANY_CONNECTIONS', 'This network has too many sockets and event streams open: close some first', 429)

/**
 * The input of a request is invalid (contract 1.2). The 400 response lists all problems at once, in schema order, with
 * one sentence for each.
 */
export class InvalidInput extends Error {
  readonly code: string = INVALID_INPUT
  readonly statusCode = 400
  readonly errors: readonly string[]

  constructor (...errors: string[]) {
    super(errors.join('; '))
    this.errors = errors
  }
}
