import type { FastifyBaseLogger, FastifyError } from 'fastify'
import { GraphQLError, type FormattedExecutionResult, type GraphQLFormattedError } from 'graphql'
import { translate } from '../../plugins/errors.ts'
import { InternalError, InvalidInput } from '../../schema/errors.ts'
import { limits } from '../../schema/graphql-limits.ts'

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
  const source = (error.originalError ?? error) as { errors?: unknown }
  return Array.isArray(source.errors) && !(source instanceof InvalidInput) ? source.errors : [error]
}

function format (error: GraphQLError, log: FastifyBaseLogger): GraphQLFormattedError {
  const { message, extensions } = describe(error, log)
  return {
    message: message.length > limits.message ? `${message.slice(0, limits.message)}…` : message,
    ...error.locations && { locations: error.locations },
    ...error.path && { path: error.path },
    extensions,
  }
}

function describe (error: GraphQLError, log: FastifyBaseLogger): { message: string, extensions: Record<string, unknown> } {
  const cause = rootOf(error)
  if (cause instanceof GraphQLError && !isCompiled(error)) return { message: error.message, extensions: { code: 'GRAPHQL_INVALID', ...cause.extensions } }
  const known = translate(cause as FastifyError)
  if (known instanceof InvalidInput) return { message: known.message, extensions: { code: known.code, errors: known.errors } }
  if (known instanceof InternalError) log.error({ err: cause }, 'a GraphQL operation failed')
  return { message: known.message, extensions: { code: known.code ?? 'BAD_REQUEST' } }
}

// GraphQL's own errors tell of syntax, validation, variables and arguments. Others that have a path but no origin
// come from compiled code, which forgets why a value could not be sent, and keeps the message.
function isCompiled ({ path, originalError, message }: GraphQLError): boolean {
  return path !== undefined && !originalError && !message.startsWith('Argument ')
}

/** The error that an error comes from. */
export function rootOf (error: GraphQLError): Error {
  let cause: Error = error
  while (cause instanceof GraphQLError && cause.originalError) cause = cause.originalError
  return cause
}
