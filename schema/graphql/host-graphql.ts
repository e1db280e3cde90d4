import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify'
import type { DocumentNode } from 'graphql'
import type { Static } from '@sinclair/typebox'
import type { GivenLimits, GraphqlLimits } from '../options/limits.ts'
import type { Actor } from '../options/policy.ts'
import type { Usher } from '../options/usher.ts'

/** What the resolvers and loaders of a host get as their context. It is frozen. */
export interface UsherGraphQLContext {
  /** The user behind the bearer token; null without a token. */
  readonly actor: Actor | null
  /** The app in which Usher is registered. */
  readonly app: FastifyInstance
  /** The decorator of Usher, also if the option `decoratorName` gives it another name. */
  readonly usher: Usher
  /**
   * The request of the operation, or the one that opened its socket or event stream. Undefined while an event is
   * rendered for several subscribers, which only happens to fields with the directive `@shared`.
   */
  readonly request: FastifyRequest | undefined
  readonly log: FastifyBaseLogger
  /** Is aborted when a subscription ends, and when the time of an operation is over (`graphql.resolverSeconds`). */
  readonly signal: AbortSignal
}

// The `GraphQLResolveInfo` of graphql 16. A host may have another version of graphql, whose types differ.
type ResolveInfo = any

/** A resolver of a host. It may return a promise. */
export type UsherResolver = (parent: any, args: any, context: UsherGraphQLContext, info: ResolveInfo) => unknown

/** How a field of `Subscription` gets its events, and what it returns for each of them. */
export interface UsherSubscriptionResolver {
  /** Returns the events: objects whose member with the name of the field is its value. */
  subscribe: (parent: any, args: any, context: UsherGraphQLContext, info: ResolveInfo) => AsyncIterable<unknown> |
    Promise<AsyncIterable<unknown>>
  resolve?: UsherResolver
}

/**
 * How values of a scalar are read and written, like in graphql-js. An instance of `GraphQLScalarType` has this shape.
 */
export interface UsherScalar {
  serialize?: (value: any) => unknown
  parseValue?: (value: any) => unknown
  parseLiteral?: (node: any, variables?: any) => unknown
}

/** Returns the name of the type of a value of an interface or union. By default, it is the member `__typename`. */
export interface UsherAbstractType {
  resolveType: (value: any, context: UsherGraphQLContext, info: ResolveInfo) => string | undefined |
    Promise<string | undefined>
}

/** The resolvers of a host, by type and field. */
export type UsherResolvers =
  Record<string, Record<string, UsherResolver | UsherSubscriptionResolver> | UsherScalar | UsherAbstractType>

/** Returns the values of a field for many objects at once, in the order of `queries`. A value may be an `Error`. */
export type UsherLoader =
  (queries: readonly { obj: any, params: any }[], context: UsherGraphQLContext) => readonly unknown[] |
    Promise<readonly unknown[]>

/** The loaders of a host, by type and field. */
export type UsherLoaders = Record<string, Record<string, UsherLoader>>

/** What a host adds to the endpoint /graphql. */
export interface GraphqlExtension {
  /** Types and extensions of Usher's types, in the schema definition language. */
  typeDefs?: TypeDefs | readonly TypeDefs[] | undefined
  resolvers?: UsherResolvers | undefined
  loaders?: UsherLoaders | undefined
}
// A document of any version of graphql.
type TypeDefs = string | { readonly kind: string, readonly definitions: readonly object[] }

/** A validated extension. */
export interface HostGraphql {
  readonly typeDefs: readonly (string | DocumentNode)[]
  readonly resolvers: UsherResolvers
  readonly loaders: UsherLoaders
}

/** The option `graphql`: the limits of operations, and what the host adds. */
export type GivenGraphql = GivenLimits<typeof GraphqlLimits> & GraphqlExtension

/** Returns the error for a mistake in the option `graphql`. */
export const extensionError = (where: string, problem: string) => new Error(`usher: graphql.${where} ${problem}`)

/**
 * Separates the limits in the option `graphql` from what the host adds. The host's part is undefined if there is none.
 * Throws an `Error` if a member has the wrong type. What is inside is checked when the schema is built.
 */
export function readGraphql (given: unknown): {
  limits: Partial<Static<typeof GraphqlLimits>>, host: HostGraphql | undefined
} {
  if (typeof given !== 'object' || given === null) return { limits: given as never, host: undefined }
  const { typeDefs, resolvers, loaders, ...limits } = given as GraphqlExtension
  if (typeDefs === undefined && resolvers === undefined && loaders === undefined) return { limits, host: undefined }
  return {
    limits,
    host: Object.freeze({
      typeDefs: readTypeDefs(typeDefs),
      resolvers: readByType('resolvers', resolvers) as UsherResolvers,
      loaders: readByType('loaders', loaders) as UsherLoaders,
    }),
  }
}

function readTypeDefs (given: unknown): HostGraphql['typeDefs'] {
  const parts = Array.isArray(given) ? given : [given]
  if (parts.length > 0 && parts.every((part) => typeof part === 'string' || part?.kind === 'Document')) return parts
  throw extensionError(
    'typeDefs', 'must be a string of the schema definition language, a parsed document, or a list of these'
  )
}

function readByType (name: 'resolvers' | 'loaders', given: unknown = {}): object {
  if (!isRecord(given)) throw extensionError(name, 'must be an object with a member for each type')
  for (const [type, fields] of Object.entries(given)) {
    if (!isRecord(fields)) throw extensionError(`${name}.${type}`, 'must be an object with a member for each field')
  }
  return given
}

function isRecord (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
