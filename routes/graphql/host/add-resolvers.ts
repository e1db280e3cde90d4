import {
  isAbstractType, isEnumType, isInputObjectType, isScalarType, valueFromASTUntyped, type GraphQLScalarType,
} from 'graphql'
import type { AddedField, ExtendedSchema } from '../../../schema/graphql/extend-graphql.ts'
import {
  extensionError, type HostGraphql, type UsherAbstractType, type UsherScalar, type UsherSubscriptionResolver,
} from '../../../schema/graphql/host-graphql.ts'
import { defineAbstractType } from './abstract-types.ts'
import { createResolver, createSubscribe, requireEvent, requireToken, runResolver, type Run } from './field-resolver.ts'
import { batchLoads } from './loaders.ts'

const roots = ['Query', 'Mutation', 'Subscription']

/**
 * Adds the resolvers and loaders of a host to the schema that it has extended. Throws an `Error` that names the option,
 * the type and the field if one of them does not fit the schema. The host's objects are not modified, so several mounts
 * can use them.
 */
export function addHostResolvers (extended: ExtendedSchema, { resolvers, loaders }: HostGraphql): void {
  const added = new Map(extended.added.map(({ type, field }) => [`${type.name}.${field.name}`, field]))
  for (const [type, members] of Object.entries(resolvers)) checkType(extended, added, 'resolvers', type, members)
  for (const [type, members] of Object.entries(loaders)) checkType(extended, added, 'loaders', type, members)
  for (const { type, field } of extended.added) {
    addResolver(type.name, field, memberOf(resolvers, type.name, field.name), memberOf(loaders, type.name, field.name))
  }
  for (const type of Object.values(extended.schema.getTypeMap())) {
    if (isAbstractType(type)) {
      defineAbstractType(type, resolveTypeOf(type.name, resolvers))
    } else if (isScalarType(type) && Object.hasOwn(resolvers, type.name)) {
      defineScalar(type, resolvers[type.name] as UsherScalar)
    }
  }
}

function resolveTypeOf (
  name: string, resolvers: HostGraphql['resolvers']
): UsherAbstractType['resolveType'] | undefined {
  if (!Object.hasOwn(resolvers, name)) return undefined
  const { resolveType } = resolvers[name] as unknown as UsherAbstractType
  if (typeof resolveType !== 'function') throw extensionError(`resolvers.${name}`, 'must have a function resolveType')
  return resolveType
}

// A field may have the name of a member of all objects, such as `constructor`.
function memberOf (option: object, type: string, field: string): any {
  const members: object = Object.hasOwn(option, type) ? Reflect.get(option, type) : {}
  return Object.hasOwn(members, field) ? Reflect.get(members, field) : undefined
}

type Option = 'resolvers' | 'loaders'

function checkType (
  { schema, isUshers }: ExtendedSchema, added: ReadonlyMap<string, unknown>, option: Option, name: string,
  members: object
): void {
  const where = `${option}.${name}`
  const type = schema.getType(name)
  if (!type || name.startsWith('__')) throw extensionError(where, 'is for a type that typeDefs does not define')
  if (isEnumType(type) || isInputObjectType(type)) {
    throw extensionError(where, 'is for an enum or input type, which has no resolvers')
  }
  if (isScalarType(type) || isAbstractType(type)) {
    if (isUshers(name)) throw extensionError(where, 'is for a type of Usher')
    if (option === 'loaders') throw extensionError(where, 'is for a type without fields of its own')
    return
  }
  for (const [field, resolver] of Object.entries(members)) {
    if (!added.has(`${name}.${field}`)) {
      throw extensionError(`${where}.${field}`, isUshers(name) && field in type.getFields()
        ? 'is for a field of Usher, which cannot be replaced'
        : 'is for a field that typeDefs does not define')
    }
    if (option === 'loaders' && roots.includes(name)) {
      throw extensionError(`${where}.${field}`, `is for a field of ${name}: use resolvers`)
    }
    const isFunction = typeof (
      name === 'Subscription' ? (resolver as Partial<UsherSubscriptionResolver> | null)?.subscribe : resolver
    ) === 'function'
    if (!isFunction) {
      throw extensionError(
        `${where}.${field}`,
        name === 'Subscription' ? 'must be an object with a function subscribe' : 'must be a function'
      )
    }
  }
}

function addResolver (type: string, field: AddedField['field'], resolver: any, loader: any): void {
  const where = `${type}.${field.name}`
  if (resolver && loader) throw extensionError(`loaders.${where}`, 'has a resolver as well: remove one of them')
  if (!resolver && roots.includes(type)) throw extensionError(`resolvers.${where}`, 'is required')
  if (type === 'Subscription') {
    if (resolver.resolve !== undefined && typeof resolver.resolve !== 'function') {
      throw extensionError(`resolvers.${where}.resolve`, 'must be a function')
    }
    field.subscribe = createSubscribe(where, resolver)
    field.resolve = requireEvent(createResolver(field.type, resolver.resolve && runResolver(resolver.resolve)))
    return
  }
  const resolve = createResolver(field.type, loader ? runLoader(where, loader) : resolver && runResolver(resolver))
  field.resolve = type === 'Mutation' ? requireToken(resolve) : resolve
}

function runLoader (where: string, loader: HostGraphql['loaders'][string][string]): Run {
  const load = batchLoads(where, loader)
  return (parent, args, call) => load(parent, args, call)
}

function defineScalar (type: GraphQLScalarType, { serialize, parseValue, parseLiteral }: UsherScalar): void {
  for (const [name, value] of Object.entries({ serialize, parseValue, parseLiteral })) {
    if (value !== undefined && typeof value !== 'function') {
      throw extensionError(`resolvers.${type.name}.${name}`, 'must be a function')
    }
  }
  if (serialize) type.serialize = (value) => serialize(value)
  if (parseValue) type.parseValue = (value) => parseValue(value)
  if (parseLiteral) type.parseLiteral = (node, variables) => parseLiteral(node, variables)
  else if (parseValue) type.parseLiteral = (node, variables) => parseValue(valueFromASTUntyped(node, variables))
}
