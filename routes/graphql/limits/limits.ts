import type { FastifyInstance } from 'fastify'
import { getOperationAST, type DocumentNode, type GraphQLSchema, type OperationDefinitionNode } from 'graphql'
import { OperationTooCostly } from '../../../schema/graphql/limits.ts'
import { costOf, evaluate, type Cost } from '../../../schema/graphql/cost.ts'
import { DocumentBudget } from './document-budget.ts'
import { ResultBudget } from './result-budget.ts'
import { OperationQueue } from './operation-queue.ts'

/** An operation of a document, and its variables. */
export interface CostlyOperation {
  schema: GraphQLSchema
  document: DocumentNode
  operationName: string | undefined
  variables: Readonly<Record<string, unknown>>
}

/** Returns the limits of the work that GraphQL operations may cause on a node (contract 7.8). */
export function createLimits ({ usherOptions: { graphql, deadlines }, usherTelemetry: { metrics } }: FastifyInstance) {
  const { maxCost } = graphql
  const queue = new OperationQueue(maxCost, { timeoutMs: deadlines.graphqlOperation })
  metrics.gauge(
    'usher_graphql_running_cost', 'Cost of the operations that run, not counting cheap ones', () => queue.running
  )
  metrics.gauge('usher_graphql_operations_waiting', 'Operations that wait because of their cost', () => queue.waiting)
  const results = new ResultBudget(graphql)
  metrics.gauge(
    'usher_graphql_result_bytes', 'Bytes of large results that are being read or sent', () => results.taken
  )
  const costs = new WeakMap<OperationDefinitionNode, Cost>()

  return {
    documents: new DocumentBudget(graphql),
    results,
    queue,

    /** Returns the cost of an operation, or 0 if the document does not have it. Throws `OperationTooCostly`. */
    checkCost ({ schema, document, operationName, variables }: CostlyOperation): number {
      const operation = getOperationAST(document, operationName)
      if (!operation) return 0
      const known = costs.get(operation) ?? costOf(schema, document, operation)
      costs.set(operation, known)
      const cost = evaluate(known, variables)
      if (cost > maxCost) throw new OperationTooCostly(maxCost)
      return cost
    },
  }
}
