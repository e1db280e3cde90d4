import { setTimeout as sleep } from 'node:timers/promises'
import { createSourceEventStream, execute, type ExecutionResult, type GraphQLError } from 'graphql'
import type { FastifyInstance } from 'fastify'
import type { PostStream } from '../../../plugins/posts/post-stream.ts'
import type { Followed } from '../../../plugins/posts/recent-posts.ts'
import type { GraphQLContext } from '../context.ts'
import { isOutage } from '../../../schema/http/errors.ts'
import { formatExecution, rootOf } from '../execution/format.ts'
import { serialize } from '../hooks.ts'
import { textOf } from '../execution/serialize.ts'
import { describe, type Subscription } from './subscription-key.ts'

// The queue in which all events wait for their turn. Operations of clients wait in queues of their networks.
const EVENTS = [{ name: 'events', factor: 1 }]

// How often rendering an event is tried if PostgreSQL cancels its statements. A query that always takes too long never
// succeeds.
const TRIES = 3
const RETRY_MS = 1000
// The SQLSTATE query_canceled.
const CANCELLED = '57014'

// The client of events. Their reads continue if a subscriber disconnects, because others may receive the same event.
const allSubscribers = { destroyed: false }

/**
 * Opens the stream of a subscription's posts after its cursor. Throws the errors of its arguments and of the resolver.
 */
export async function openStream (usher: FastifyInstance, subscription: Subscription): Promise<PostStream<Followed>> {
  return await openSource(usher, subscription) as PostStream<Followed>
}

/**
 * Opens the events of a subscription: posts, or what the host's resolver returns. Throws the errors of its arguments
 * and of the resolver.
 */
export async function openSource (usher: FastifyInstance, subscription: Subscription): Promise<AsyncIterable<unknown>> {
  const { schema, document, variables, operationName, lastEventId } = subscription
  const contextValue: GraphQLContext = { ...contextOf(usher, subscription), lastEventId }
  const stream =
    await createSourceEventStream({ schema, document, variableValues: variables, operationName, contextValue })
  if (Symbol.asyncIterator in stream) return stream
  throw (stream.errors as [GraphQLError])[0]
}

/**
 * Returns an event as JSON. It waits and tries again while the database is unavailable or the node is overloaded,
 * because no subscriber may miss the event. Throws other errors, all errors when the app has closed, and if PostgreSQL
 * has cancelled statements of the event three times.
 */
export async function render (usher: FastifyInstance, subscription: Subscription, event: unknown): Promise<string> {
  let cancelled = 0
  for (;;) {
    const context = contextOf(usher, subscription)
    try {
      const result = await executeInTurn(usher, subscription, event, context)
      const outage = result.errors?.find(isTemporary) ?? context.outage
      if (outage) throw outage
      const formatted = result.errors ? formatExecution(result, usher.log) : result
      await serialize(usher, formatted, context)
      return textOf(formatted)
    } catch (error) {
      if (!isTemporary(error as GraphQLError) || usher.usherDatabase.breaker.stopped) throw error
      if (isCancelled(error as GraphQLError) && ++cancelled === TRIES) throw error
      // Without posts, nothing listens for the end of an outage.
      await (usher.usherOptions.without.includes('posts')
        ? sleep(RETRY_MS, undefined, { ref: false })
        : usher.usherPosts.events.wait(error))
    } finally {
      usher.usherGraphql.limits.results.release(context)
    }
  }
}

async function executeInTurn (
  usher: FastifyInstance, subscription: Subscription, event: unknown, contextValue: GraphQLContext
): Promise<ExecutionResult> {
  const { queue, checkCost } = usher.usherGraphql.limits
  const { schema, document, variables, operationName } = subscription
  const run = () =>
    execute({ schema, document, variableValues: variables, operationName, rootValue: event, contextValue })
  const cost = checkCost(subscription)
  if (queue.isFree(cost)) return run()
  contextValue.leaveQueue = await queue.enter(cost, EVENTS)
  try {
    return await run()
  } finally {
    contextValue.leaveQueue()
  }
}

/** Returns whether an error is temporary, so that the same operation may succeed later. */
export function isTemporary (error: GraphQLError): boolean {
  return isOutage(rootOf(error))
}

// Returns whether the cause of an error is a statement that PostgreSQL has cancelled, usually because it took too long.
function isCancelled (error: GraphQLError): boolean {
  const { cause } = rootOf(error) as { cause?: { code?: string } }
  return cause?.code === CANCELLED
}

// Returns a new context for each event, because the limits of results count each event separately.
function contextOf (usher: FastifyInstance, subscription: Subscription): GraphQLContext {
  const { reader, request, stopped } = subscription
  // A shared event has no request, and the host sees no actor either.
  const own = describe(usher, subscription).isExclusive ? { hostRequest: request, stopped } : {}
  return { usher, client: allSubscribers, actor: async () => reader, isEvent: true, bytes: 0, reserved: 0, ...own }
}
