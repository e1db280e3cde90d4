import createError from '@fastify/error'

/** The base class of all errors in the catalogue. Their messages may be sent to clients. */
export class UsherError extends Error {}

const define = <Code extends string> (code: Code, message: string, status: number) =>
  createError(code, message, status, UsherError as ErrorConstructor)

/**
 * The error catalogue: every failure that a response can report, with its stable code, its message and its status.
 * `plugins/errors.ts` formats them as `{ error, code }` (contract 1.3), the GraphQL error formatter as
 * `errors: [{ message, extensions: { code } }]` (contract 7.3).
 */
export const InvalidCredentials = define('INVALID_CREDENTIALS', 'Email or password is wrong', 401)
export const InvalidSession = define('INVALID_SESSION', 'The session has ended: log in again', 401)
export const Unauthenticated = define('UNAUTHENTICATED', 'A bearer token is required', 401)
export const InvalidToken = define('INVALID_TOKEN', 'The bearer token is invalid, expired or revoked', 401)

/**
 * Returns the header `WWW-Authenticate` of a 401 response (RFC 6750 3). It has an error code only if a token was sent
 * (contract 1.5).
 */
export const challengeOf = (error: unknown): string => error instanceof InvalidToken ? 'Bearer error="invalid_token"' : 'Bearer'

export const Forbidden = define('FORBIDDEN', 'You may not do this', 403)
export const OriginNotAllowed = define('ORIGIN_NOT_ALLOWED', 'Pages of this origin may not send this request', 403)

export const WrongPassword = define('WRONG_PASSWORD', 'The current password is wrong', 403)

export const NotFound = define('NOT_FOUND', 'Not found', 404)
export const UserNotFound = define('USER_NOT_FOUND', 'User not found', 404)
export const PostNotFound = define('POST_NOT_FOUND', 'Post not found', 404)
export const SessionNotFound = define('SESSION_NOT_FOUND', 'Session not found', 404)
export const UploadNotFound = define('UPLOAD_NOT_FOUND', 'Upload not found', 404)

export const MethodNotAllowed = define('METHOD_NOT_ALLOWED', '%s is not allowed here', 405)
export const NotAcceptable = define('NOT_ACCEPTABLE', 'None of the accepted media types is available. Available: %s', 406)

export const BodyStalled = define('BODY_STALLED', 'The rest of the request body did not arrive in time', 408)

export const EmailTaken = define('EMAIL_TAKEN', 'This email address is already taken', 409)
export const LastAdmin = define('LAST_ADMIN', 'The last admin can be neither deleted nor demoted', 409)

export const PasswordIsSet = define('PASSWORD_IS_SET', 'The user already has a password', 409)
export const NoMailer = define('NO_MAILER', 'No mail can be sent: the service has no mailer', 409)

export const CursorLost =
  define('CURSOR_LOST', 'Posts after this cursor were lost when the database failed over: start again without it', 410)

export const PreconditionFailed = define('PRECONDITION_FAILED', 'The resource is not in the state that the request expects', 412)
export const PayloadTooLarge = define('PAYLOAD_TOO_LARGE', 'The request body is too large', 413)
export const UnsupportedMediaType = define('UNSUPPORTED_MEDIA_TYPE', 'The content type must be %s', 415)
export const RangeNotSatisfiable = define('RANGE_NOT_SATISFIABLE', 'The range is beyond the end', 416)

/** A limit is exceeded. `retryAfter` is the number of seconds after which the client may try again, at least 1. */
export class TooManyRequests extends define('TOO_MANY_REQUESTS', 'Too many attempts, try again later', 429) {
  readonly retryAfter: number

  constructor (retryAfter: number) {
    super()
    this.retryAfter = Math.max(1, Math.ceil(retryAfter))
  }
}

export const TooManyConnections =
  define('TOO_MANY_CONNECTIONS', 'This network has too many sockets and event streams open: close some first', 429)
export const TooManySubscriptions =
  define('TOO_MANY_SUBSCRIPTIONS', 'This network runs too many different subscriptions: stop some first', 429)

export const ExpectationFailed = define('EXPECTATION_FAILED', 'The only supported expectation is 100-continue', 417)

export const OperationTooCostly = define('OPERATION_TOO_COSTLY', 'The operation costs more than %s: ask for fewer rows or fields', 400)
export const ResponseTooLarge =
  define('OPERATION_TOO_COSTLY', 'The response would be larger than %s bytes: ask for fewer rows or fields', 400)
export const TooManyDocuments = define('TOO_MANY_DOCUMENTS', 'Too many new GraphQL documents: use variables, or try again later', 429)

/** The client disconnected before the response, so only the log shows this error. nginx introduced the status 499 for it. */
export const ClientGone = define('CLIENT_GONE', 'The client has disconnected', 499)

export const InternalError = define('INTERNAL_ERROR', 'The server failed', 500)
export const DatabaseUnavailable = define('DATABASE_UNAVAILABLE', 'The database is unavailable, try again', 503)
export const Overloaded = define('OVERLOADED', 'The server is busy, try again', 503)
export const StorageFull = define('STORAGE_FULL', 'The file cannot be stored now', 507)

/**
 * The input of a request is invalid (contract 1.2). The 400 response lists all problems at once, in schema order, with one
 * sentence for each.
 */
export class InvalidInput extends Error {
  readonly code = 'INVALID_INPUT'
  readonly statusCode = 400
  readonly errors: readonly string[]

  constructor (...errors: string[]) {
    super(errors.join('; '))
    this.errors = errors
  }
}
