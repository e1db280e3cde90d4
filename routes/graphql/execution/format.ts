import type { FastifyBaseLogger, FastifyError } from 'fastify'
import { GraphQLError, type FormattedExecutionResult, type GraphQLFormattedError } from 'graphql'
import { translate } from '../../../plugins/http/errors.ts'
import { StepUpRequired } from '../../../schema/sign-in/second-factor.ts'
import { InternalError, InvalidInput, TooManyRequests } from '../../../schema/http/errors.ts'
import { limits, TooManyErrors } from '../../../schema/graphql/limits.ts'
import { FurtherErrors } from './failures.ts'
import { HostError } from '../host/errors.ts'
import { locationsOf } from './locations.ts'

/**
 * Returns the errors of an operation in the format that clients receive (contract 7.3), with a message and
 * `extensions.code`. The message of an unexpected error reveals no cause; the cause is logged. Errors of more fields
 * than the limit are replaced with one.
 */
export function formatErrors (errors: readonly GraphQLError[], log: FastifyBaseLogger): GraphQLFormattedError[] {
  const logged = new Set<Error>()
  const all = errors.flatMap(unfold)
  const listed = all.filter(isListed).slice(0, limits.failures)
  const further = listed.length < all.length
    ? [new GraphQLError('', { originalError: new TooManyErrors(limits.failures) })]
    : []
  return [...listed, ...further].map((error) => format(error, logOnce))

  // A loader of the host may have failed for many rows at once.
  function logOnce (cause: Error): void {
    if (!logged.has(cause)) log.error({ err: cause }, 'a GraphQL operation failed')
    logged.add(cause)
  }
}

const isListed = (error: GraphQLError) => !(rootOf(error) instanceof FurtherErrors)

type Log = (cause: Error) => void

/** The result of an operation that has failed. `data` is undefined if nothing was executed. */
export interface FailedExecution { data?: unknown, errors?: readonly GraphQLError[] }

/** Returns a failed result in the format that clients receive. `data` is null if nothing was executed. */
export function formatExecution ({ data, errors }: FailedExecution, log: FastifyBaseLogger): FormattedExecutionResult {
  return { data: data as FormattedExecutionResult['data'] ?? null, errors: formatErrors(errors!, log) }
}

// The code of the error in which mercurius wraps those of parsing and validation.
const INVALID_DOCUMENT = 'MER_ERR_GQL_VALIDATION'

// Returns the errors that mercurius has wrapped, or the error itself. Errors of a host may have a member `errors`, too.
function unfold (error: GraphQLError): readonly GraphQLError[] {
  const { code, errors } = (error.originalError ?? error) as { code?: unknown, errors?: readonly GraphQLError[] }
  if (code !== INVALID_DOCUMENT) return [error]
  errors!.forEach(dropStack)
  return errors!
}

// mercurius caches the errors of invalid documents. Their stack traces, which nobody reads, would keep all objects of
// the validation until the next full garbage collection (docs/decisions/performance.md). An error that is not about the
// document is logged with its stack trace.
function dropStack (error: Error): void {
  if (error instanceof GraphQLError) error.stack = ''
}

function format (error: GraphQLError, log: Log): GraphQLFormattedError {
  const { message, extensions } = describe(error, log)
  const locations = locationsOf(error)
  return {
    message: message.length > limits.message ? `${message.slice(0, limits.message)}…` : message,
    ...locations && { locations },
    ...error.path && { path: error.path },
    extensions,
  }
}

function describe (error: GraphQLError, log: Log): { message: string, extensions: Record<string, unknown> } {
  const cause = rootOf(error)
  if (cause instanceof GraphQLError && !isCompiled(error)) {
    return { message: error.message, extensions: { code: 'GRAPHQL_INVALID', ...cause.extensions } }
  }
  const known = translate(cause as FastifyError)
  if (known instanceof InvalidInput) {
    return { message: known.message, extensions: { code: known.code, errors: known.errors } }
  }
  if (known instanceof InternalError) log((known.cause ?? cause) as Error)
  if (known instanceof HostError) {
    return { message: known.message, extensions: { ...known.extensions, code: known.code } }
  }
  if (known instanceof TooManyRequests) {
    return { message: known.message, extensions: { code: known.code, retryAfter: known.retryAfter } }
  }
  if (known instanceof StepUpRequired) {
    return { message: known.message, extensions: { code: known.code, maxAge: known.maxAge } }
  }
  return { message: known.message, extensions: { code: known.code ?? 'BAD_REQUEST' } }
}

// The errors of graphql-js are about syntax, validation, variables and arguments. Any other error that has a path but
// no original error comes from code compiled by graphql-jit. If a value cannot be serialized, that code keeps the
// message of the error only.
function isCompiled ({ path, originalError, message }: GraphQLError): boolean {
  return path !== undefined && !originalError && !message.startsWith('Argument ')
}

/** Returns the innermost original error of an error. */
export function rootOf (error: GraphQLError): Error {
  let cause: Error = error
  while (cause instanceof GraphQLError && cause.originalError) cause = cause.originalError
  return cause
}
