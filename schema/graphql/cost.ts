import {
  getNamedType, getNullableType, isAbstractType, isListType, isObjectType, isUnionType, Kind, SchemaMetaFieldDef,
  TypeMetaFieldDef, TypeNameMetaFieldDef, type DocumentNode, type FieldNode, type GraphQLCompositeType,
  type GraphQLField, type GraphQLOutputType, type GraphQLSchema, type OperationDefinitionNode, type SelectionSetNode,
  type ValueNode,
} from 'graphql'
import { collectFields, fragmentsOf, selectionSetsByType, selectionSetsOf, type Fragments } from './user-fields.ts'
import { hostFieldOf, type HostField } from '../users/host-fields.ts'
import { LARGEST_PAGE, USUAL_PAGE } from '../posts/post.ts'

type Variables = Readonly<Record<string, unknown>>

/** The cost of an operation: a number, or a function of its variables if one of them is the size of a page. */
export type Cost = number | ((variables: Variables) => number)

// The sizes that pages of a field may have.
interface Sizes { min: number, usual: number, max: number }

// The assumed length of lists that have no argument `first`. These are the lists of introspection, and few of them are
// longer than this in Usher's schema.
const ROWS_OF_OTHER_LISTS = 5

const introspection = new Map(
  [SchemaMetaFieldDef, TypeMetaFieldDef, TypeNameMetaFieldDef].map((field) => [field.name, field])
)

/**
 * Returns the cost of a valid operation (contract 7.8): every field counts 1 for each row that it is in, and every row
 * that is read counts 1. A list is assumed to be as long as its page may be. Aliases count like fields, fields that
 * several fragments have in common count once, and `@skip` and `@include` are ignored. Fields of a host cost what their
 * directives say (`schema/users/host-fields.ts`). An object of an interface or a union costs as much as all its
 * fragments together.
 */
export function costOf (schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): Cost {
  return new Estimate(schema, document, operation).ofOperation()
}

/** Returns the cost of an operation with the given variables. */
export function evaluate (cost: Cost, variables: Variables): number {
  return typeof cost === 'number' ? cost : cost(variables)
}

class Estimate {
  readonly #schema: GraphQLSchema
  readonly #operation: OperationDefinitionNode
  readonly #fragments: Fragments

  constructor (schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode) {
    this.#schema = schema
    this.#operation = operation
    this.#fragments = fragmentsOf(document)
  }

  ofOperation (): Cost {
    const { operation, selectionSet } = this.#operation
    return this.#ofSelection(this.#schema.getRootType(operation)!, [selectionSet], ROWS_OF_OTHER_LISTS)
  }

  // `rows` is the number of rows to assume for lists without an argument `first`. A list such as `nodes` has as many
  // rows as the page that it belongs to.
  #ofSelection (type: GraphQLCompositeType, sets: SelectionSetNode[], rows: Cost, page?: Cost): Cost {
    let sum: Cost = 0
    for (const nodes of collectFields(sets, this.#fragments).values()) {
      sum = add(sum, this.#ofField(type, nodes, rows, page))
    }
    return sum
  }

  #ofField (parent: GraphQLCompositeType, nodes: FieldNode[], rows: Cost, pageAbove: Cost | undefined): Cost {
    const [node] = nodes as [FieldNode]
    const name = node.name.value
    // A union has no fields except `__typename`.
    const field = introspection.get(name) ?? (isUnionType(parent) ? TypeNameMetaFieldDef : parent.getFields()[name]!)
    const host = hostFieldOf(field)
    if (host) return this.#ofHostField(field, host, nodes, pageAbove)
    const page = this.#pageOf(field, node)
    const size = page ?? rows
    const below = this.#ofObjects(field.type, selectionSetsOf(nodes), size)
    return add(add(1, page ?? 0), isListType(getNullableType(field.type)) ? multiply(size, below) : below)
  }

  // A list directly within an object that stands for a page, such as `nodes` of a connection of the host, is as long as
  // the page.
  #ofHostField (
    field: GraphQLField<unknown, unknown>, host: HostField, nodes: FieldNode[], pageAbove: Cost | undefined
  ): Cost {
    const page = this.#hostPageOf(field, host, nodes[0]!)
    const isList = isListType(getNullableType(field.type))
    const size = page ?? host.rows ?? pageAbove ?? USUAL_PAGE
    const below = this.#ofObjects(field.type, selectionSetsOf(nodes), size, isList ? undefined : page)
    return add(host.weight, isList ? multiply(size, add(1, below)) : below)
  }

  #hostPageOf (
    { args }: GraphQLField<unknown, unknown>, { slicing, rows = USUAL_PAGE }: HostField, { arguments: given }: FieldNode
  ): Cost | undefined {
    const argument = args.find(({ name }) => slicing.includes(name))
    if (!argument) return undefined
    const node = given!.find(({ name }) => name.value === argument.name)
    const usual = typeof argument.defaultValue === 'number' ? Math.max(argument.defaultValue, 0) : rows
    // Usher does not know the largest page of a host, and a host may accept pages without rows.
    return node ? this.#sizeOf(node.value, { min: 0, usual, max: Infinity }) : usual
  }

  #ofObjects (type: GraphQLOutputType, sets: SelectionSetNode[], rows: Cost, page?: Cost): Cost {
    const named = getNamedType(type)
    if (isObjectType(named)) return this.#ofSelection(named, sets, rows, page)
    if (!isAbstractType(named)) return 0
    const byType = selectionSetsByType(named, sets, this.#fragments, this.#schema)
    return [...byType].map(([type, sets]) => this.#ofSelection(type, sets, rows, page)).reduce(add, 0)
  }

  #pageOf ({ args }: GraphQLField<unknown, unknown>, { arguments: given }: FieldNode): Cost | undefined {
    if (!args.some(({ name }) => name === 'first')) return undefined
    const argument = given!.find(({ name }) => name.value === 'first')
    return argument ? this.#sizeOf(argument.value, { min: 1, usual: USUAL_PAGE, max: LARGEST_PAGE }) : USUAL_PAGE
  }

  #sizeOf (value: ValueNode, sizes: Sizes): Cost {
    if (value.kind !== Kind.VARIABLE) return clamp(value.kind === Kind.INT ? Number(value.value) : null, sizes)
    const name = value.name.value
    const definition = this.#operation.variableDefinitions!.find(({ variable }) => variable.name.value === name)
    const preset = definition?.defaultValue ? this.#sizeOf(definition.defaultValue, sizes) as number : sizes.usual
    return (variables) => variables[name] === undefined ? preset : clamp(variables[name], sizes)
  }
}

// When the operation is executed, null counts as absent, and values that are too large or not numbers are rejected.
// Values that are too small are rejected as well. If they cost nothing, a document could have thousands of failing
// fields for the price of a few rows.
function clamp (size: unknown, { min, usual, max }: Sizes): number {
  if (typeof size === 'number' && size >= min) return Math.min(size, max)
  return size === null || (typeof size === 'number' && size < min) ? usual : max
}

function add (one: Cost, other: Cost): Cost {
  if (typeof one === 'number' && typeof other === 'number') return one + other
  return (variables) => evaluate(one, variables) + evaluate(other, variables)
}

function multiply (one: Cost, other: Cost): Cost {
  if (typeof one === 'number' && typeof other === 'number') return one * other
  return (variables) => evaluate(one, variables) * evaluate(other, variables)
}
