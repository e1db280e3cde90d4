import type { FastifyError } from 'fastify'
import { InternalError, InvalidInput, UsherError } from '../../../schema/http/errors.ts'

/** An error of a resolver of the host whose message and extensions may be sent to clients. */
export class HostError extends UsherError {
  readonly statusCode = 400
  readonly code: string
  readonly extensions: Readonly<Record<string, unknown>>

  constructor (message: string, extensions: Readonly<Record<string, unknown>>) {
    super(message)
    this.code = typeof extensions['code'] === 'string' ? extensions['code'] : 'BAD_REQUEST'
    this.extensions = extensions
  }
}

/**
 * Returns the error that stands for what a resolver of the host has thrown. Errors of Usher, errors with a status of
 * 4xx and each `GraphQLError` may be sent to clients. Everything else becomes an `InternalError`, whose cause is
 * logged.
 */
export function readHostError (thrown: unknown): Error {
  if (thrown instanceof UsherError || thrown instanceof InvalidInput) return thrown
  if (!(thrown instanceof Error)) {
    return new InternalError({ cause: new Error(`A resolver of the host has thrown ${typeof thrown}, not an Error`) })
  }
  const { statusCode, extensions } = thrown as FastifyError & { extensions?: Record<string, unknown> }
  const isRejection = statusCode !== undefined && statusCode >= 400 && statusCode < 500
  // The name is compared, because the host may have another copy of graphql.
  const isGraphql = thrown.name === 'GraphQLError' && typeof extensions === 'object'
  if (isGraphql && (thrown as { originalError?: unknown }).originalError === undefined) {
    return new HostError(thrown.message, extensions)
  }
  return isRejection ? thrown : new InternalError({ cause: thrown })
}
