import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { refusalOf } from '../../db/driver/circuit-breaker.ts'
import {
  DatabaseUnavailable, INVALID_INPUT, InternalError, InvalidInput, Overloaded, PayloadTooLarge, TooManyRequests,
  UnsupportedContentCoding, UnsupportedMediaType, UsherError,
} from '../../schema/http/errors.ts'
import { IdempotencyKeyInUse } from '../../schema/http/idempotency.ts'
import { WrongPassword } from '../../schema/sign-in/passwords/passwords.ts'
import {
  SecondFactorMissing, SecondFactorRequired, StepUpRequired, stepUpChallengeOf, WrongSecondFactor,
} from '../../schema/sign-in/second-factor.ts'
import { ProviderUnavailable } from '../../schema/sign-in/providers.ts'
import { ScanUnavailable, StorageFailed, StorageFull, StorageUnavailable } from '../../schema/uploads/upload.ts'
import { challengeOf } from '../../schema/sign-in/login.ts'
import { adviceFor, isExhausted } from '../support/exhausted.ts'
import { sendIsolated } from './response-isolation.ts'
import { createSampler } from '../support/sampler.ts'

const RETRY_AFTER_SECONDS = '1'

// What a route has set for the response that has failed describes something else than the error (RFC 9110 8).
const REPRESENTATION = [
  'etag', 'last-modified', 'accept-ranges', 'content-disposition', 'link', 'location', 'idempotency-replayed',
]

const UNAUDITED = [WrongPassword, StepUpRequired, SecondFactorMissing, WrongSecondFactor]

const isNew = createSampler()

/** Sets the error handler, which sends every error in one of the two shapes of contract 1.2 and 1.3. */
export default fp(async function errors (app) {
  app.setErrorHandler(sendError)
}, { name: 'usher-errors' })

/**
 * An error handler that sends an error in one of the two shapes of contract 1.2 and 1.3, on Usher's routes and on
 * others: the node's own, those of a configuration file, and those of a host that sets it as its handler.
 */
export function sendError (error: FastifyError, request: FastifyRequest, reply: FastifyReply) {
  const known = translate(error)
  const { usherAccess: access } = mountOf(request)
  const actor = access?.actors.in(request)
  const rejection = access && actor ? access.rejectionOf(known, actor, request.socket) : known
  keepConnection(known, reply)
  if (!(rejection instanceof Promise)) return respond(rejection, request, reply)
  return rejection.catch(translate).then((error) => respond(error, request, reply))
}

type Mount = Pick<FastifyInstance, 'usherAccess' | 'usherAudit' | 'usherTelemetry'>

// Returns what the mount has to which the route of a request belongs. Routes beside the mount have none of it: nobody
// counts what they reject, and guards write to the account log themselves.
const mountOf = ({ server }: FastifyRequest): Mount | { [Name in keyof Mount]?: undefined } => server

/**
 * Returns the error of the catalogue that stands for an error of Fastify or of a library. A limit of the process or of
 * the machine that is reached becomes `Overloaded`, and other unexpected errors become `InternalError`. Errors of
 * Usher, and errors with a status of 4xx or 503, are returned as they are.
 */
export function translate (error: FastifyError): FastifyError | InvalidInput {
  switch (error.code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE': return new UnsupportedMediaType('application/json')
    case 'FST_ERR_CTP_BODY_TOO_LARGE': return new PayloadTooLarge()
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new InvalidInput('body is shorter or longer than its content-length')
  }
  if (error instanceof UsherError || error instanceof InvalidInput) return error
  if (isExhausted(error)) return new Overloaded({ cause: error })
  // A hook of the host, such as a rate limiter or load shedding, may have rejected the request.
  const isRejection = error.statusCode === 503 || (error.statusCode! >= 400 && error.statusCode! < 500)
  return isRejection ? error : new InternalError({ cause: error })
}

/**
 * Keeps the connection of a body that is too large open for a moment. Fastify adds `Connection: close`, so it would be
 * closed at once and the client could lose the response. `lingering-close.ts` closes it later.
 */
export function keepConnection (error: Error, reply: FastifyReply): void {
  if (error instanceof PayloadTooLarge) reply.removeHeader('connection')
}

/**
 * Sets the status and the headers of the response to an error, writes it to the log, and a rejection to the account
 * log. The caller sends the body.
 */
export function reportError (error: FastifyError | InvalidInput, request: FastifyRequest, reply: FastifyReply): void {
  const mount = mountOf(request)
  if (mount.usherAccess && isAudited(error)) {
    mount.usherAudit.addRejection(mount.usherAccess.callerOf(request), error.statusCode)
  }
  reply.code(error.statusCode!)
  if (error.statusCode! >= 500) logFailure(error, request)
  if (error.statusCode === 503) {
    mount.usherTelemetry?.rejections.add(1, error instanceof UsherError ? error.code : 'other')
  }
  setErrorHeaders(error, reply)
}

/** Sets the headers of the response to an error, which say what the client may do about it. */
export function setErrorHeaders (error: FastifyError | InvalidInput, reply: FastifyReply): void {
  if (error instanceof TooManyRequests) reply.header('retry-after', error.retryAfter)
  if (error.statusCode === 503 || error instanceof IdempotencyKeyInUse) setRetryAfter(reply)
  if (error instanceof StepUpRequired) reply.header('www-authenticate', stepUpChallengeOf(error))
  if (error instanceof UnsupportedContentCoding) reply.header('accept-encoding', 'identity')
  if (error.statusCode === 401 && !reply.hasHeader('www-authenticate')) {
    reply.header('www-authenticate', challengeOf(error))
  }
}

/** Sets `Retry-After`, unless a hook of the host that has rejected the request, such as load shedding, has set it. */
export function setRetryAfter (reply: FastifyReply, seconds: string | number = RETRY_AFTER_SECONDS): void {
  if (!reply.hasHeader('retry-after')) reply.header('retry-after', seconds)
}

// An outage is logged once, by the circuit breaker, and metrics count rejections. A line for each request would be a
// flood. Why PostgreSQL could not run a statement, why a file could not be stored or scanned, and a limit that is
// reached, are logged once a minute. That a client has disconnected is no failure.
function logFailure (error: FastifyError | InvalidInput, { log, raw: { socket } }: FastifyRequest): void {
  const err = (error.cause ?? error) as NodeJS.ErrnoException
  if (err.code === 'ERR_STREAM_PREMATURE_CLOSE' && socket.destroyed) return log.debug({ err }, 'a response was cut off')
  const limit = adviceFor(err)
  if (limit !== undefined && isNew(err.code!)) log.error({ err }, limit)
  if ([StorageFull, StorageFailed, StorageUnavailable, ScanUnavailable].some((kind) => error instanceof kind)) {
    return log[isNew(`${error.code} ${err.code}`) ? 'error' : 'debug']({ err }, error.message)
  }
  const isOutage = [DatabaseUnavailable, Overloaded, ProviderUnavailable].some((kind) => error instanceof kind)
  if (!isOutage) return log.error({ err }, error.message)
  log.debug({ err }, error.message)
  const { code, message: reason } = refusalOf(error) ?? {}
  if (code !== undefined && isNew(code)) log.warn({ code, reason }, 'The database could not run a statement')
}

function respond (error: FastifyError | InvalidInput, request: FastifyRequest, reply: FastifyReply) {
  for (const name of REPRESENTATION) reply.removeHeader(name)
  if (error.statusCode !== 416) reply.removeHeader('content-range')
  reportError(error, request, reply)
  reply.type('application/json')
  if (error.statusCode === 400) {
    const code = error instanceof InvalidInput && error.code !== INVALID_INPUT ? { code: error.code } : {}
    return send({ errors: 'errors' in error ? error.errors : [error.message], ...code })
  }
  if (error instanceof SecondFactorRequired) {
    const { message, code, challenge, methods } = error
    return send({ error: message, code, challenge, methods })
  }
  return send({ error: error.message, code: error.code })

  // A route beside the mount may have a schema for another shape.
  function send (body: object) {
    return mountOf(request).usherAccess ? sendIsolated.call(reply, body) : reply.send(JSON.stringify(body))
  }
}

// A wrong current password has its own entry in the account log, written where the password is checked. To ask for
// another authentication is no denial.
function isAudited (error: FastifyError | InvalidInput): error is FastifyError & { statusCode: 403 | 429 } {
  return error.statusCode === 429 || (error.statusCode === 403 && !UNAUDITED.some((kind) => error instanceof kind))
}
