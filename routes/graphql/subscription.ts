import {
  createSourceEventStream, execute, getOperationAST, Kind, print, separateOperations, visit, type GraphQLError,
  type DocumentNode, type ExecutionResult, type GraphQLSchema,
} from 'graphql'
import type { FastifyInstance } from 'fastify'
import type { PostEvent, PostStream } from '../../plugins/post-stream.ts'
import { DatabaseUnavailable, Overloaded } from '../../schema/errors.ts'
import type { GraphQLContext } from './context.ts'
import { formatExecution, rootOf } from './format.ts'

/** A subscription's document, checked, and what it is run with. */
export interface Subscription {
  schema: GraphQLSchema
  document: DocumentNode
  variables: Record<string, unknown>
  operationName: string | undefined
  /** The cursor of the last event that the client has seen, where its transport knows it: rather than `after`. */
  lastEventId?: string | undefined
}

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

// Documents are kept where many clients send the same, see `checkOperation`.
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

/** What an event is to the subscribers, as JSON. Not before all of it can be read: none is to miss it. */
export async function render (usher: FastifyInstance, { schema, document, variables, operationName }: Subscription, event: PostEvent): Promise<string> {
  for (;;) {
    const result = await execute({ schema, document, variableValues: variables, operationName, rootValue: event, contextValue: contextOf(usher) })
    const outage = result.errors?.find(isPassing)
    if (!outage) return JSON.stringify(formatted(result, usher))
    await usher.usherEvents.wait(outage)
  }
}

function formatted (result: ExecutionResult, { log }: FastifyInstance): object {
  return result.errors ? formatExecution(result, log) : result
}

/** Whether what failed may be tried again as it is. */
export function isPassing (error: GraphQLError): boolean {
  const cause = rootOf(error)
  return cause instanceof DatabaseUnavailable || cause instanceof Overloaded
}

// Each event is an operation of its own to the bound on rows.
function contextOf (usher: FastifyInstance): GraphQLContext {
  return { usher, client: everybody, actor: async () => null, rows: 0 }
}
