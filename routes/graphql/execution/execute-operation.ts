import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { GraphQLError } from 'graphql'
import { createContext, type GraphQLContext } from '../context.ts'
import type { Operation } from './operation.ts'
import { textOf } from './serialize.ts'

/** Callbacks for the outcome of an operation. One of them is called, unless the operation is stopped before. */
export interface Respond {
  /** Receives the result as JSON, including errors of execution. */
  result (text: string): void
  /** Receives the error of an operation that could not be executed. */
  error (error: GraphQLError): void
}

/**
 * Executes a query or a mutation of a socket. Returns a function that discards the result, and resolves when the
 * operation has ended. An operation that waits for its turn ends at once, others when they have been executed.
 */
export function executeOperation (
  usher: FastifyInstance, request: FastifyRequest, actor: GraphQLContext['actor'], operation: Operation,
  respond: Respond
): () => Promise<void> {
  const { query, variables, operationName } = operation
  const stopping = new AbortController()
  const context: GraphQLContext = { ...createContext(usher, request, operation), actor, discarded: stopping.signal }
  const finish = (send: () => void) => {
    context.leaveQueue?.()
    usher.usherGraphql.limits.results.release(context)
    if (!stopping.signal.aborted) send()
  }
  const ended = usher.graphql(query, context, variables, operationName).then(
    (result) => finish(() => respond.result(textOf(result))),
    (error) => finish(() => respond.error(error)))
  return () => {
    stopping.abort()
    return ended
  }
}
