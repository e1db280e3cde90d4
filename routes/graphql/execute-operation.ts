import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { GraphQLError } from 'graphql'
import { createContext, type GraphQLContext } from './context.ts'
import type { Operation } from './operation.ts'
import { textOf } from './serialize.ts'

/** What is called when an operation of a socket has ended, unless it was stopped before. */
export interface Respond {
  /** Gets the result as JSON. */
  result (text: string): void
  error (error: GraphQLError): void
}

/** Executes a query or a mutation that came by a socket. Returns a function that stops it: its result is dropped then. */
export function executeOperation (
  usher: FastifyInstance, request: FastifyRequest, actor: GraphQLContext['actor'], { query, variables, operationName }: Operation, respond: Respond
): () => void {
  const context: GraphQLContext = { ...createContext(usher, request, operationName), actor }
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
