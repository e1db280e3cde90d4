import {
  getOperationAST, Kind, print, separateOperations, TypeInfo, visit, visitWithTypeInfo, type DocumentNode,
  type GraphQLSchema,
} from 'graphql'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { hostFieldOf } from '../../../schema/users/host-fields.ts'
import type { Actor, ReadAction } from '../../../schema/options/policy.ts'
import { actionsOf } from '../resolvers/reading.ts'

/** A validated subscription, see `checkSubscription`. */
export interface Subscription {
  schema: GraphQLSchema
  document: DocumentNode
  variables: Record<string, unknown>
  operationName: string | undefined
  /** The user who reads the events; null without a token. */
  reader: Actor | null
  /** The request of the subscription, or the one that opened its socket. */
  request: FastifyRequest
  /** Is aborted when the subscription ends, if it is exclusive. */
  stopped?: AbortSignal
  /**
   * The cursor of the last event that the client has received, if its transport sends it. It takes precedence over
   * `after`.
   */
  lastEventId?: string | undefined
}

/**
 * Returns a key that is the same for subscriptions with the same events. They may differ in the cursor after which they
 * begin, in white space and comments, in the name of the operation, and in unused definitions of their documents.
 * Subscribers who may not see the same have different keys. Every subscription with a field of the host has another
 * key, unless the field is `@shared`: the host may return something else for each actor and request. So has one with
 * organisations.
 */
export function keyOf (usher: FastifyInstance, subscription: Subscription): string {
  const { variables, reader } = subscription
  const { text, after, actions, isExclusive } = describe(usher, subscription)
  if (isExclusive) return `exclusive ${++exclusive}`
  const others = { ...variables }
  for (const name of after) delete others[name]
  return JSON.stringify([text, others, usher.usherAccess.policy.audienceOf(reader, actions)])
}

export interface Described {
  /** The printed operation. */
  text: string
  /** The names of the variables that are only used for the argument `after`. */
  after: Set<string>
  /** The actions of the policy on which the events depend. */
  actions: readonly ReadAction[]
  /** Whether the events are those of a field of the host. */
  isHosts: boolean
  /** Whether each subscriber gets events of its own: fields of the host and organisations depend on the actor. */
  isExclusive: boolean
}

// The number of subscriptions that have had a key of their own.
let exclusive = 0

// `checkSubscription` returns the same document to clients that send the same text, so this is computed once for all of
// them.
const described = new WeakMap<DocumentNode, Map<string | undefined, Described>>()

/** Returns what is known about the operation of a subscription. */
export function describe (usher: FastifyInstance, { schema, document, operationName }: Subscription): Described {
  const known = described.get(document) ?? new Map<string | undefined, Described>()
  described.set(document, known)
  const found = known.get(operationName) ?? describeOperation(usher, schema, document, operationName)
  known.set(operationName, found)
  return found
}

function describeOperation (
  usher: FastifyInstance, schema: GraphQLSchema, document: DocumentNode, operationName: string | undefined
): Described {
  // The result contains the operation and the fragments that it spreads, and no other definitions.
  const separate = separateOperations(document)[getOperationAST(document, operationName)!.name?.value ?? '']!
  const definitions = separate.definitions.map((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION ? { ...definition, name: undefined } : definition)
  const fields = new Set<string>()
  const hosts: { isRoot: boolean, isShared: boolean }[] = []
  // What a reader sees of the organisations of a user depends on memberships, of which audiences know nothing.
  let hasOrganizations = false
  const types = new TypeInfo(schema)
  visit(separate, visitWithTypeInfo(types, {
    Field ({ name }) {
      fields.add(name.value)
      const host = hostFieldOf(types.getFieldDef()!)
      hasOrganizations ||= !host && name.value === 'organizations'
      if (host) hosts.push({ isRoot: types.getParentType() === schema.getSubscriptionType(), isShared: host.shared })
    },
  }))
  return {
    text: print({ kind: Kind.DOCUMENT, definitions }),
    after: variablesOfAfter(separate),
    actions: actionsOf(usher, fields),
    isHosts: hosts.some(({ isRoot }) => isRoot),
    isExclusive: hasOrganizations || hosts.some(({ isRoot, isShared }) => isRoot || !isShared),
  }
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
