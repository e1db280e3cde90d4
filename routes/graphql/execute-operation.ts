import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { GraphQLError } from 'graphql'
import { createContext, type GraphQLContext } from './context.ts'
import type { Operation } from './operation.ts'
import { textOf } from './serialize.ts'

/** Callbacks for the outcome of an operation. One of them is called, unless the operation is stopped before. */
export interface Respond {
  /** Receives the result as JSON, including errors of execution. */
  result (text: string): void
  /** Receives the error of an operation that could not be executed. */
  error (error: GraphQLError): void
}

/** Executes a query or a mutation of a socket. Returns a function that discards the result. */
export function executeOperation (
  usher: FastifyInstance, request: FastifyRequest, actor: GraphQLContext['actor'], operation: Operation, respond: Respond
): () => void {
  const { query, variables, operationName } = operation
  const context: GraphQLContext = { ...createContext(usher, request, operation), actor }
  let stopped = false
  const finish = (send: () => void) => {
    context.leaveQueue?.()
    usher.usherGraphqlLimits.results.release(context)
    if (!stopped) send()
  }
  usher.graphql(query, context, variables, operationName).then(
    (result) => finish(() => respond.result(textOf(result))),
    (error) => finish(() => respond.error(error)))
  return () => { stopped = true }
}
