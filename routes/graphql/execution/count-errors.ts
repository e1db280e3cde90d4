import type { FastifyInstance } from 'fastify'
import type { GraphQLFormattedError } from 'graphql'
import { DatabaseUnavailable, Overloaded } from '../../../schema/http/errors.ts'

const REJECTIONS: ReadonlySet<string> = new Set([new DatabaseUnavailable().code, new Overloaded().code])

/**
 * Creates the function that counts the errors which clients receive, by their code. The status of a response does not
 * tell them, because it is 200 (contract 7.1).
 */
export function createErrorCount (
  { usherTelemetry: { metrics, rejections } }: FastifyInstance
): (errors: readonly GraphQLFormattedError[]) => void {
  const counted = metrics.counter('usher_graphql_errors_total', 'Errors of GraphQL operations', { label: 'code' })
  return (errors) => {
    for (const { extensions } of errors) {
      // A host chooses the codes of its own errors.
      const code = /^[A-Z][A-Z0-9_]{0,63}$/.exec(String(extensions?.code))?.[0] ?? 'other'
      counted.add(1, code)
      if (REJECTIONS.has(code)) rejections.add(1, code)
    }
  }
}
