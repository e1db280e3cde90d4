import { isOutage } from '../../../schema/http/errors.ts'
import { limits, TooManyErrors } from '../../../schema/graphql/limits.ts'

/** The fields of an operation that have failed. */
export interface Failures {
  /** The number of fields that have failed in an operation. */
  failed?: number
  /** The error that stands for all further ones. */
  furtherError?: FurtherErrors
  /** Why one of the fields beyond the limit has failed, if it would succeed later. */
  outage?: Error
}

/**
 * The error of every field that fails after the first ones of an operation. It exists once for each operation. Since it
 * has a path, graphql-js uses it as it is instead of creating another error with a stack trace, which would take most
 * of the time of an operation with thousands of failing fields. `formatErrors` replaces all of them with one.
 */
export class FurtherErrors extends TooManyErrors {
  readonly path: readonly string[] = []

  constructor () {
    super(limits.failures)
  }
}

/**
 * Counts a field of a row that has failed. Returns the error to throw: the given one, or `FurtherErrors` after the
 * first ones. A page has many rows and a row many aliases, so that a document could otherwise cause thousands of
 * errors.
 * @param convert returns the error that stands for the given one. It is not called for those that are left out
 */
export function limitFailure (context: Failures, error: unknown, convert = (error: unknown) => error as Error): Error {
  context.failed = (context.failed ?? 0) + 1
  if (context.failed <= limits.failures) return convert(error)
  if (isOutage(error)) context.outage ??= error
  context.furtherError ??= new FurtherErrors()
  return context.furtherError
}
