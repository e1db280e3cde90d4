import { finished } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { ExecutionResult, FormattedExecutionResult, GraphQLError } from 'graphql'
import { ResponseTooLarge } from '../../schema/errors.ts'
import { checkLimits } from '../../schema/graphql-limits.ts'
import { networkOf } from '../../schema/network.ts'
import type { GraphQLContext } from './context.ts'
import { formatErrors } from './format.ts'
import { relaxDefaults } from './operation.ts'
import { keepSerialized, payloadOf, serializeInTurns } from './serialize.ts'

// JSON.stringify takes about 2 ms for this, on a slow machine.
const SERIALIZED_AT_ONCE = 256 * 1024

/** Adds the limits of operations to mercurius: before a document is validated, before it is executed, and afterwards. */
export function addLimits (app: FastifyInstance): void {
  const { documents, queue, results, checkCost } = app.usherGraphqlLimits

  app.graphql.addHook<GraphQLContext>('preValidation', async (_, document, { request }) => {
    documents.charge(request!.ip, checkLimits(document))
    relaxDefaults(document)
  })

  // Both hooks run for every operation: they return a promise only if there is something to wait for.
  app.graphql.addHook<GraphQLContext>('preExecution', (schema, document, context, variables = {}) => {
    const cost = checkCost({ schema, document, operationName: context.operationName, variables })
    if (!queue.isFree(cost)) return enterQueue(cost, context)
  })

  async function enterQueue (cost: number, context: GraphQLContext): Promise<void> {
    context.leaveQueue = await queue.enter(cost, networkOf(context.request!.ip))
    // An execution that fails unexpectedly must not keep its turn.
    if (context.reply) finished(context.reply.raw, context.leaveQueue)
  }

  app.graphql.addHook<any, GraphQLContext>('onResolution', (execution, context) => {
    context.leaveQueue?.()
    if (context.reserved > 0 && context.reply) finished(context.reply.raw, () => results.release(context))
    return serialize(app, execution, context)
  })
}

type Sized = Pick<GraphQLContext, 'bytes' | 'reply'>

/**
 * Serializes a result for `textOf` and for its response if it is large, so that other requests have their turn meanwhile. If
 * there are too many bytes, an error takes its place.
 */
export function serialize (
  app: FastifyInstance, result: ExecutionResult | FormattedExecutionResult, { bytes, reply }: Sized
): Promise<void> | undefined {
  if (bytes <= SERIALIZED_AT_ONCE) return
  // Fastify sends a Buffer as it is, but its types only know serializers that return text.
  reply?.serializer(payloadOf as (result: object) => string)
  return serializeLarge(app, result)
}

async function serializeLarge (app: FastifyInstance, result: ExecutionResult | FormattedExecutionResult): Promise<void> {
  const { log, usherGraphqlLimits: { results: { maxBytes } } } = app
  const json = await serializeInTurns(result, maxBytes)
  if (json) return keepSerialized(result, json)
  const error = new ResponseTooLarge(maxBytes)
  Object.assign(result, { data: null, errors: formatErrors([error as unknown as GraphQLError], log) })
}
