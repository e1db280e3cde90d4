import type { FastifyInstance } from 'fastify'
import {
  getOperationAST, OperationTypeNode, type ExecutionResult, type FormattedExecutionResult, type GraphQLError,
} from 'graphql'
import { checkLimits, ResponseTooLarge } from '../../schema/graphql/limits.ts'
import { onceClosed } from '../../plugins/http/raw/connections.ts'
import { clientNetworksOf } from '../../plugins/http/client-info.ts'
import type { GraphQLContext } from './context.ts'
import { formatErrors } from './execution/format.ts'
import { forgetText } from './execution/locations.ts'
import { relaxDefaults } from './execution/operation.ts'
import { forgetSerialized, keepSerialized, payloadOf, serializeInTurns } from './execution/serialize.ts'

// JSON.stringify takes about 2 ms for this, on a slow machine.
const SERIALIZED_AT_ONCE = 256 * 1024

/**
 * Adds hooks to mercurius that limit operations: before a document is validated, before it is executed, and when its
 * result is there.
 */
export function addLimits (app: FastifyInstance): void {
  const { documents, queue, results, checkCost } = app.usherGraphql.limits

  app.graphql.addHook<GraphQLContext>('preValidation', async (_, document, { request }) => {
    documents.charge(clientNetworksOf(request!), checkLimits(document))
    relaxDefaults(document)
  })

  // The following hooks run for every operation. They return a promise only if they have to wait, because a promise
  // costs time.
  app.graphql.addHook<GraphQLContext>('preExecution', (schema, document, context, variables = {}) => {
    forgetText(document)
    context.isQuery = getOperationAST(document, context.operationName)?.operation === OperationTypeNode.QUERY
    const cost = checkCost({ schema, document, operationName: context.operationName, variables })
    if (!queue.isFree(cost)) return enterQueue(cost, context)
  })

  async function enterQueue (cost: number, context: GraphQLContext): Promise<void> {
    context.leaveQueue = await queue.enter(cost, clientNetworksOf(context.request!), context.discarded)
    // `onResolution` does not run if the execution fails unexpectedly, so the end of the response also ends the turn.
    if (context.reply) onceClosed(context.reply, context.leaveQueue)
  }

  app.graphql.addHook<any, GraphQLContext>('onResolution', (execution, context) => {
    context.leaveQueue?.()
    if (context.reserved > 0 && context.reply) onceClosed(context.reply, () => results.release(context))
    const serializing = serialize(app, execution, context)
    if (serializing) return serializing.then(() => withhold(execution, context))
    return withhold(execution, context)
  })

  // The session may have ended while the operation read. The result of a mutation is sent, because it says what was
  // written.
  function withhold (
    execution: ExecutionResult, { verified, isQuery, client }: GraphQLContext
  ): Promise<void> | undefined {
    const may = !verified || !isQuery || app.usherAccess.isStillAllowed(verified, client)
    return may === true ? undefined : failUnless(may, execution, () => app.usherAccess.endOf(verified!, client))
  }

  async function failUnless (
    may: boolean | Promise<boolean>, execution: ExecutionResult, endOf: () => Promise<Error>
  ): Promise<void> {
    try {
      if (!await may) throw await endOf()
    } catch (error) {
      fail(app, execution, error as Error)
    }
  }
}

// Replaces a result with an error.
function fail ({ log }: FastifyInstance, result: ExecutionResult | FormattedExecutionResult, error: Error): void {
  forgetSerialized(result)
  Object.assign(result, { data: null, errors: formatErrors([error as GraphQLError], log) })
}

type ResultContext = Pick<GraphQLContext, 'bytes' | 'reply'>

/**
 * Serializes a large result in many turns of the event loop, so that other requests do not have to wait. `textOf` and
 * the response then use that JSON. Returns undefined for a small result, which is serialized later. Replaces a result
 * of too many bytes with an error.
 */
export function serialize (
  app: FastifyInstance, result: ExecutionResult | FormattedExecutionResult, { bytes, reply }: ResultContext
): Promise<void> | undefined {
  if (bytes <= SERIALIZED_AT_ONCE) return
  // Fastify also accepts a serializer that returns a Buffer, but its types only allow text.
  reply?.serializer(payloadOf as (result: object) => string)
  return serializeLarge(app, result)
}

async function serializeLarge (
  app: FastifyInstance, result: ExecutionResult | FormattedExecutionResult
): Promise<void> {
  const { maxBytes } = app.usherGraphql.limits.results
  const json = await serializeInTurns(result, maxBytes)
  if (json) return keepSerialized(result, json)
  fail(app, result, new ResponseTooLarge(maxBytes))
}
