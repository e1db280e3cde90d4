import type { FastifyBaseLogger, FastifyError } from 'fastify'
import { GraphQLError, type FormattedExecutionResult, type GraphQLFormattedError } from 'graphql'
import { translate } from '../../plugins/errors.ts'
import { InternalError, InvalidInput, UsherError } from '../../schema/errors.ts'

/**
 * The errors of an operation as the client gets them (contract 7.3): a message and `extensions.code`. Unexpected
 * failures say no more than that the server failed; their cause goes to the log.
 */
export function formatErrors (errors: readonly GraphQLError[], log: FastifyBaseLogger): GraphQLFormattedError[] {
  return errors.flatMap(unfold).map((error) => format(error, log))
}

/** A whole answer that failed; without data where nothing was executed. */
export function formatExecution ({ data, errors }: { data?: unknown, errors?: readonly GraphQLError[] }, log: FastifyBaseLogger): FormattedExecutionResult {
  return { data: data as FormattedExecutionResult['data'] ?? null, errors: formatErrors(errors!, log) }
}

// mercurius wraps what parsing and validation found in an error of its own.
function unfold (error: GraphQLError): GraphQLError[] {
  const found = (error.originalError as { errors?: unknown } | undefined)?.errors
  return Array.isArray(found) && !(error.originalError instanceof InvalidInput) ? found : [error]
}

function format (error: GraphQLError, log: FastifyBaseLogger): GraphQLFormattedError {
  const { message, extensions } = describe(error, log)
  return {
    message,
    ...error.locations && { locations: error.locations },
    ...error.path && { path: error.path },
    extensions,
  }
}

function describe (error: GraphQLError, log: FastifyBaseLogger): { message: string, extensions: Record<string, unknown> } {
  const cause = rootOf(error)
  // GraphQL's own: syntax, validation, coercion of variables.
  if (cause instanceof GraphQLError) return { message: cause.message, extensions: { code: 'GRAPHQL_INVALID', ...cause.extensions } }
  const known = translate(cause as FastifyError)
  if (known instanceof InvalidInput) return { message: known.message, extensions: { code: known.code, errors: known.errors } }
  if (known instanceof InternalError) log.error({ err: cause }, 'a GraphQL operation failed')
  return { message: known.message, extensions: { code: known instanceof UsherError ? known.code : 'BAD_REQUEST' } }
}

function rootOf (error: GraphQLError): Error {
  let cause: Error = error
  while (cause instanceof GraphQLError && cause.originalError) cause = cause.originalError
  return cause
}
