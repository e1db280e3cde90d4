import {
  getDirectiveValues, isObjectType, type GraphQLDirective, type GraphQLField, type GraphQLNamedType, type GraphQLSchema,
} from 'graphql'
import { USUAL_PAGE } from '../posts/post.ts'

/** The directives with which a host describes its fields. The SDL has them if the host adds something to it. */
export const hostDirectives = `
  "The field is the same for every reader, so one event with it may be sent to all subscribers."
  directive @shared on FIELD_DEFINITION
  "What the field costs for each object that it belongs to."
  directive @cost(weight: Int! = 1) on FIELD_DEFINITION
  "How many items a list has: the value of one of the arguments, otherwise the assumed size."
  directive @listSize(assumedSize: Int! = ${USUAL_PAGE}, slicingArguments: [String!]! = ["first", "limit"]) on FIELD_DEFINITION
`

/** What Usher knows about a field of the host. */
export interface HostField {
  /** Whether all readers get the same value. */
  readonly shared: boolean
  /** The cost of the field itself. */
  readonly weight: number
  /** The number of items of a list if no argument says it; undefined if the host does not say it either. */
  readonly rows: number | undefined
  /** The arguments that may say how many items a list has. */
  readonly slicing: readonly string[]
}

type Field = GraphQLField<unknown, any>

/** Marks a field as one of the host, with what its directives say. */
export function markHostField (schema: GraphQLSchema, field: Field): HostField {
  const valuesOf = (name: string) =>
    field.astNode && getDirectiveValues(schema.getDirective(name) as GraphQLDirective, field.astNode)
  const { assumedSize: rows, slicingArguments: slicing } = {
    ...defaults, ...valuesOf('listSize') as Partial<ListSize> | undefined,
  }
  const { weight } = valuesOf('cost') as { weight: number } | undefined ?? { weight: 1 }
  const host: HostField = { shared: valuesOf('shared') !== undefined, weight, rows, slicing }
  field.extensions = { ...field.extensions, usher: host }
  return host
}

interface ListSize { assumedSize: number | undefined, slicingArguments: readonly string[] }
const defaults: ListSize = { assumedSize: undefined, slicingArguments: ['first', 'limit'] }

/** Returns what is known about a field of the host, or undefined for a field of Usher. */
export function hostFieldOf (field: Field): HostField | undefined {
  return field.extensions['usher'] as HostField | undefined
}

/**
 * Returns whether the objects of a type are rows of Usher: its users and posts. In a mount without posts, a host may
 * have posts of its own.
 */
export function hasRows (type: GraphQLNamedType): type is GraphQLNamedType & { name: 'User' | 'Post' } {
  if (type.name !== 'User' && type.name !== 'Post') return false
  return isObjectType(type) && Object.values(type.getFields()).some((field) => !hostFieldOf(field))
}
