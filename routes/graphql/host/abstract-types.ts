import type { GraphQLAbstractType, GraphQLResolveInfo } from 'graphql'
import type { UsherAbstractType } from '../../../schema/graphql/host-graphql.ts'
import type { GraphQLContext } from '../context.ts'
import { limitFailure } from '../execution/failures.ts'
import type { HostCall } from './context.ts'
import { readHostError } from './errors.ts'

type ResolveType = UsherAbstractType['resolveType']

const finders =
  new WeakMap<GraphQLAbstractType, (value: object, call: HostCall, info: GraphQLResolveInfo) => Promise<void>>()

const byMember: ResolveType = (value) => value.__typename

/**
 * Defines how the type of a value of an interface or a union is found: by the host's function or, by default, by its
 * member `__typename`. The code of graphql-jit can neither wait for the type, nor for an error: if `resolveType` threw
 * one, its rejection would be unhandled and end the process. So `findTypes` finds the type before, and `resolveType`
 * only looks it up.
 */
export function defineAbstractType (type: GraphQLAbstractType, resolveType: ResolveType = byMember): void {
  const names = new WeakMap<object, string | undefined>()
  type.resolveType = (value: object) => names.get(value)
  finders.set(type, async (value, { context, deadline }, info) => {
    names.set(value, await deadline.wait(Promise.resolve(resolveType(value, context, info))))
  })
}

/**
 * Finds the types of a value of a field, or of the items of its list. Returns the value, in which an `Error` replaces
 * everything whose type could not be found.
 */
export async function findTypes (
  type: GraphQLAbstractType, value: unknown, call: HostCall, context: GraphQLContext, info: GraphQLResolveInfo
): Promise<unknown> {
  if (typeof value !== 'object' || value === null || value instanceof Error) return value
  if (Array.isArray(value)) return Promise.all(value.map((item) => findTypes(type, item, call, context, info)))
  try {
    await finders.get(type)!(value, call, info)
    return value
  } catch (error) {
    return limitFailure(context, error, readHostError)
  }
}
