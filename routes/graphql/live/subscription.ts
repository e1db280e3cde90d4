import {
  createSourceEventStream, execute, getOperationAST, Kind, print, separateOperations, visit, type GraphQLError,
  type DocumentNode, type ExecutionResult, type GraphQLSchema,
} from 'graphql'
import type { FastifyInstance } from 'fastify'
import type { PostEvent, PostStream } from '../../../plugins/posts/post-stream.ts'
import { DatabaseUnavailable, Overloaded } from '../../../schema/errors.ts'
import type { Actor, ReadAction } from '../../../schema/policy.ts'
import type { GraphQLContext } from '../context.ts'
import { formatExecution, rootOf } from '../format.ts'
import { serialize } from '../hooks.ts'
import { actionsOf } from '../reading.ts'
import { textOf } from '../serialize.ts'

/** A validated subscription, see `checkSubscription`. */
export interface Subscription {
  schema: GraphQLSchema
  document: DocumentNode
  variables: Record<string, unknown>
  operationName: string | undefined
  /** The user who reads the events; null without a token. */
  reader: Actor | null
  /** The cursor of the last event that the client has received, if its transport sends it. It takes precedence over `after`. */
  lastEventId?: string | undefined
}

// The name of the queue in which all events wait for their turn. Operations of clients wait in queues of their networks.
const EVENTS = 'events'

// How often rendering an event is tried if PostgreSQL cancels its statements. A query that always takes too long never succeeds.
const TRIES = 3
// The SQLSTATE query_canceled.
const CANCELLED = '57014'

// The client of events. Their reads continue if a subscriber disconnects, because others may receive the same event.
const allSubscribers = { destroyed: false }

/**
 * Returns a key that is the same for subscriptions with the same events. They may differ in the cursor after which they begin, in
 * white space and comments, in the name of the operation, and in unused definitions of their documents. Subscribers who may not see
 * the same have different keys.
 */
export function keyOf (usher: FastifyInstance, { document, variables, operationName, reader }: Subscription): string {
  const { text, after, actions } = describe(usher, document, operationName)
  const others = { ...variables }
  for (const name of after) delete others[name]
  return JSON.stringify([text, others, usher.usherVisibility.audienceOf(reader, actions)])
}

interface Described {
  /** The printed operation. */
  text: string
  /** The names of the variables that are only used for the argument `after`. */
  after: Set<string>
  /** The actions of the policy on which the events depend. */
  actions: readonly ReadAction[]
}

// `checkSubscription` returns the same document to clients that send the same text, so this is computed once for all of them.
// Documents belong to one mount.
const described = new WeakMap<DocumentNode, Map<string | undefined, Described>>()

function describe (usher: FastifyInstance, document: DocumentNode, operationName: string | undefined): Described {
  const known = described.get(document) ?? new Map<string | undefined, Described>()
  described.set(document, known)
  const found = known.get(operationName) ?? describeOperation(usher, document, operationName)
  known.set(operationName, found)
  return found
}

function describeOperation (usher: FastifyInstance, document: DocumentNode, operationName: string | undefined): Described {
  // The result contains the operation and the fragments that it spreads, and no other definitions.
  const separate = separateOperations(document)[getOperationAST(document, operationName)!.name?.value ?? '']!
  const definitions = separate.definitions.map((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION ? { ...definition, name: undefined } : definition)
  const fields = new Set<string>()
  visit(separate, { Field: ({ name }) => { fields.add(name.value) } })
  return { text: print({ kind: Kind.DOCUMENT, definitions }), after: variablesOfAfter(separate), actions: actionsOf(usher, fields) }
}

// Returns the variables that are used for the argument `after` and for nothing else.
function variablesOfAfter (document: DocumentNode): Set<string> {
  const [names, others] = [new Set<string>(), new Set<string>()]
  visit(document, {
    VariableDefinition: () => false,
    Argument ({ name, value }) {
      if (name.value !== 'after' || value.kind !== Kind.VARIABLE) return
      names.add(value.name.value)
      return false
    },
    Variable: ({ name }) => { others.add(name.value) },
  })
  for (const name of others) names.delete(name)
  return names
}

/** Opens the stream of a subscription's posts after its cursor. Throws the errors of its arguments and of the resolver. */
export async function openStream (usher: FastifyInstance, subscription: Subscription): Promise<PostStream> {
  const { schema, document, variables, operationName, lastEventId } = subscription
  const contextValue: GraphQLContext = { ...contextOf(usher, subscription), lastEventId }
  const stream = await createSourceEventStream({ schema, document, variableValues: variables, operationName, contextValue })
  if (Symbol.asyncIterator in stream) return stream as PostStream
  throw (stream.errors as [GraphQLError])[0]
}

/**
 * Returns an event as JSON. It waits and tries again while the database is unavailable or the node is overloaded, because no
 * subscriber may miss the event. Throws other errors, and if PostgreSQL has cancelled statements of the event three times.
 */
export async function render (usher: FastifyInstance, subscription: Subscription, event: PostEvent): Promise<string> {
  let cancelled = 0
  for (;;) {
    const context = contextOf(usher, subscription)
    try {
      const result = await executeInTurn(usher, subscription, event, context)
      const outage = result.errors?.find(isTemporary)
      if (outage) throw outage
      const formatted = result.errors ? formatExecution(result, usher.log) : result
      await serialize(usher, formatted, context)
      return textOf(formatted)
    } catch (error) {
      if (!isTemporary(error as GraphQLError)) throw error
      if (isCancelled(error as GraphQLError) && ++cancelled === TRIES) throw error
      await usher.usherEvents.wait(error)
    } finally {
      usher.usherGraphqlLimits.results.release(context)
    }
  }
}

async function executeInTurn (
  usher: FastifyInstance, subscription: Subscription, event: PostEvent, contextValue: GraphQLContext
): Promise<ExecutionResult> {
  const { queue, checkCost } = usher.usherGraphqlLimits
  const { schema, document, variables, operationName } = subscription
  const run = () => execute({ schema, document, variableValues: variables, operationName, rootValue: event, contextValue })
  const cost = checkCost(subscription)
  if (queue.isFree(cost)) return run()
  const endTurn = await queue.enter(cost, EVENTS)
  try {
    return await run()
  } finally {
    endTurn()
  }
}

/** Returns whether an error is temporary, so that the same operation may succeed later. */
export function isTemporary (error: GraphQLError): boolean {
  const cause = rootOf(error)
  return cause instanceof DatabaseUnavailable || cause instanceof Overloaded
}

// Returns whether the cause of an error is a statement that PostgreSQL has cancelled, usually because it took too long.
function isCancelled (error: GraphQLError): boolean {
  const { cause } = rootOf(error) as { cause?: { code?: string } }
  return cause?.code === CANCELLED
}

// Returns a new context for each event, because the limits of results count each event separately.
function contextOf (usher: FastifyInstance, { reader }: Subscription): GraphQLContext {
  return { usher, client: allSubscribers, actor: async () => reader, bytes: 0, reserved: 0 }
}
