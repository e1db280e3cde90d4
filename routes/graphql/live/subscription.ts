import {
  createSourceEventStream, execute, getOperationAST, Kind, print, separateOperations, visit, type GraphQLError,
  type DocumentNode, type ExecutionResult, type GraphQLSchema,
} from 'graphql'
import type { FastifyInstance } from 'fastify'
import type { PostEvent, PostStream } from '../../../plugins/posts/post-stream.ts'
import { DatabaseUnavailable, Overloaded } from '../../../schema/errors.ts'
import type { GraphQLContext } from '../context.ts'
import { formatExecution, rootOf } from '../format.ts'
import { serialize } from '../hooks.ts'
import { textOf } from '../serialize.ts'

/** A subscription's document, checked, and what it is run with. */
export interface Subscription {
  schema: GraphQLSchema
  document: DocumentNode
  variables: Record<string, unknown>
  operationName: string | undefined
  /** The cursor of the last event that the client has seen, where its transport knows it: rather than `after`. */
  lastEventId?: string | undefined
}

// All events wait in one queue, beside those of the networks.
const EVENTS = 'events'

// How often an event is tried whose statements PostgreSQL cancels: a query that always takes too long never succeeds.
const TRIES = 3
const CANCELLED = '57014'

// Events stay when a client goes: others may have the same.
const everybody = { destroyed: false }

/**
 * Returns the same key for subscriptions whose events are the same: those that differ in nothing but where they begin,
 * white space, comments, the name of the operation, and other definitions of their documents.
 */
export function keyOf ({ document, variables, operationName }: Subscription): string {
  const { text, after } = describe(document, operationName)
  const others = { ...variables }
  for (const name of after) delete others[name]
  return JSON.stringify([text, others])
}

interface Described { text: string, after: Set<string> }

// Documents are kept where many clients send the same, see `checkSubscription`.
const described = new WeakMap<DocumentNode, Map<string | undefined, Described>>()

function describe (document: DocumentNode, operationName: string | undefined): Described {
  const known = described.get(document) ?? new Map<string | undefined, Described>()
  described.set(document, known)
  const found = known.get(operationName) ?? describeOperation(document, operationName)
  known.set(operationName, found)
  return found
}

function describeOperation (document: DocumentNode, operationName: string | undefined): Described {
  // Only the fragments that the operation spreads go along.
  const separate = separateOperations(document)[getOperationAST(document, operationName)!.name?.value ?? '']!
  const definitions = separate.definitions.map((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION ? { ...definition, name: undefined } : definition)
  return { text: print({ kind: Kind.DOCUMENT, definitions }), after: variablesOfAfter(separate) }
}

// The variables that stand for an argument `after`, and for nothing else.
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

/** The posts that a subscription is about, from where it begins. Throws the errors of its arguments, and of the resolver. */
export async function openStream (usher: FastifyInstance, { schema, document, variables, operationName, lastEventId }: Subscription): Promise<PostStream> {
  const contextValue: GraphQLContext = { ...contextOf(usher), lastEventId }
  const stream = await createSourceEventStream({ schema, document, variableValues: variables, operationName, contextValue })
  if (Symbol.asyncIterator in stream) return stream as PostStream
  throw (stream.errors as [GraphQLError])[0]
}

/**
 * Returns an event as JSON, once all of it can be read: no subscriber is to miss it. Throws if its statements take longer than
 * PostgreSQL lets them, three times.
 */
export async function render (usher: FastifyInstance, subscription: Subscription, event: PostEvent): Promise<string> {
  let cancelled = 0
  for (;;) {
    const context = contextOf(usher)
    try {
      const result = await executeInTurn(usher, subscription, event, context)
      const outage = result.errors?.find(isPassing)
      if (outage) throw outage
      const formatted = result.errors ? formatExecution(result, usher.log) : result
      await serialize(usher, formatted, context)
      return textOf(formatted)
    } catch (error) {
      if (!isPassing(error as GraphQLError)) throw error
      if (isCancelled(error as GraphQLError) && ++cancelled === TRIES) throw error
      await usher.usherEvents.wait(error)
    } finally {
      usher.usherGraphqlLimits.results.release(context)
    }
  }
}

async function executeInTurn (usher: FastifyInstance, subscription: Subscription, event: PostEvent, contextValue: GraphQLContext): Promise<ExecutionResult> {
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

/** Whether what failed may be tried again as it is. */
export function isPassing (error: GraphQLError): boolean {
  const cause = rootOf(error)
  return cause instanceof DatabaseUnavailable || cause instanceof Overloaded
}

// Returns whether PostgreSQL has cancelled a statement, usually because it took too long.
function isCancelled (error: GraphQLError): boolean {
  const { cause } = rootOf(error) as { cause?: { code?: string } }
  return cause?.code === CANCELLED
}

// Each event is an operation of its own to the bound on rows.
function contextOf (usher: FastifyInstance): GraphQLContext {
  return { usher, client: everybody, actor: async () => null, bytes: 0, reserved: 0 }
}
