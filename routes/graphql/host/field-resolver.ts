import {
  getNamedType, GraphQLError, isAbstractType, isLeafType, isNonNullType, type GraphQLFieldResolver,
  type GraphQLOutputType, type GraphQLResolveInfo,
} from 'graphql'
import { Unauthenticated } from '../../../schema/sign-in/login.ts'
import { Forbidden, InternalError } from '../../../schema/http/errors.ts'
import { hasRows } from '../../../schema/users/host-fields.ts'
import type { UsherResolver, UsherSubscriptionResolver } from '../../../schema/graphql/host-graphql.ts'
import type { GraphQLContext } from '../context.ts'
import { limitFailure } from '../execution/failures.ts'
import { findTypes } from './abstract-types.ts'
import { knownCall, openCall, type HostCall } from './context.ts'
import { readHostError } from './errors.ts'
import { countValue, readReferences, type Reference } from './values.ts'

type FieldResolver = GraphQLFieldResolver<any, any>
/** Returns the value of a field of the host, or a promise. */
export type Run = (parent: any, args: unknown, call: HostCall, info: GraphQLResolveInfo) => unknown

/** Calls a resolver of the host. */
export const runResolver = (resolver: UsherResolver): Run => (parent, args, { context }, info) =>
  resolver(parent, args, context, info)

// Does what graphql-js does for fields without a resolver, but with the context of the host.
const readMember: Run = (parent, args, { context }, { fieldName }) => {
  const value = parent?.[fieldName]
  return typeof value === 'function' ? parent[fieldName](args, context) : value
}

/**
 * Returns a resolver for a field of the host. It runs the host's with the host's context and within the time of the
 * operation, counts the bytes of its value, and reads the users and posts to which the value refers.
 */
export function createResolver (type: GraphQLOutputType, run: Run = readMember): FieldResolver {
  const named = getNamedType(type)
  const isLeaf = isLeafType(named)
  const isRequired = isNonNullType(type)
  const abstract = isAbstractType(named) ? named : undefined
  const reference: Reference | undefined = hasRows(named) ? named.name : undefined

  return (parent, args, context: GraphQLContext, info) => {
    const call = knownCall(context)
    return call ? resolve(call) : openCall(context).then(resolve, fail)

    function resolve (call: HostCall): unknown {
      try {
        const value = run(viewOf(parent, info), args, call, info)
        const mustWait = isPromise(value) || hasPromises(value)
        const finished = mustWait
          ? call.deadline.wait(settle(value)).then((value) => finish(value, call))
          : finish(value, call)
        return isPromise(finished) ? finished.then(undefined, fail) : finished
      } catch (error) {
        return fail(error)
      }
    }

    function finish (value: unknown, call: HostCall): unknown {
      if (value instanceof Error) throw value
      if (value == null && isRequired) throw context.furtherError ?? nullError(info)
      if (reference) return readReferences(reference, value, type, context, info)
      countValue(context, value, isLeaf)
      return abstract ? findTypes(abstract, value, call, context, info) : value
    }

    function fail (error: unknown): never {
      throw limitFailure(context, error, readHostError)
    }
  }
}

/**
 * Returns a resolver that rejects operations without a token, as every mutation does (contract 7.4), and those of an
 * API key with a list of actions.
 */
export function requireToken (resolve: FieldResolver): FieldResolver {
  return async (parent, args, context, info) => {
    const actor = await context.actor()
    if (!actor) throw new Unauthenticated()
    // No action permits it, so a key with a list of actions does not.
    if (actor.actions !== null) throw new Forbidden()
    return resolve(parent, args, context, info)
  }
}

/** Returns a resolver of a subscription's events. A request that is executed like a query has no event. */
export function requireEvent (resolve: FieldResolver): FieldResolver {
  return (parent, args, context, info) => {
    if (context.isEvent) return resolve(parent, args, context, info)
    throw new GraphQLError(
      'Subscriptions need a WebSocket or server-sent events', { extensions: { code: 'BAD_REQUEST' } }
    )
  }
}

/** Returns a function that opens the events of a subscription of the host. */
export function createSubscribe (where: string, { subscribe }: UsherSubscriptionResolver): FieldResolver {
  return async (_, args, context, info) => {
    const { context: hostContext, deadline } = await openCall(context)
    try {
      const events = await deadline.wait(Promise.resolve(subscribe(undefined, args, hostContext, info)))
      if (typeof events?.[Symbol.asyncIterator] === 'function') return events
    } catch (error) {
      throw readHostError(error)
    }
    throw new InternalError({
      cause: new Error(`usher: graphql.resolvers.${where}.subscribe must return an async iterable`),
    })
  }
}

// graphql-js would say the same, but in an error for every row, see `limitFailure`.
function nullError ({ parentType, fieldName }: GraphQLResolveInfo): Error {
  return new Error(`Cannot return null for non-nullable field ${parentType.name}.${fieldName}.`)
}

const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as PromiseLike<unknown> | undefined)?.then === 'function'
const hasPromises = (value: unknown): value is unknown[] => Array.isArray(value) && value.some(isPromise)

// Waits for a value and for the items of a list. An item that fails becomes its error.
async function settle (value: unknown): Promise<unknown> {
  const settled = await value
  if (!hasPromises(settled)) return settled
  return Promise.all(settled.map(async (item) => {
    try {
      return await item
    } catch (error) {
      return readHostError(error)
    }
  }))
}

const views = new WeakMap<object, object>()

// Rows of Usher are shared by requests, so the host gets frozen copies, without the version. Operations have no parent.
function viewOf (parent: any, { parentType }: GraphQLResolveInfo): unknown {
  const { name } = parentType
  if (name === 'Query' || name === 'Mutation') return undefined
  if (!hasRows(parentType)) return parent
  let view = views.get(parent)
  if (view) return view
  const { rowVersion, contentBytes, ...shown } = parent
  view = Object.freeze(shown as object)
  views.set(parent, view)
  return view
}
