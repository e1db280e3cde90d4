import {
  getNamedType, getNullableType, isListType, isObjectType, Kind, SchemaMetaFieldDef, TypeMetaFieldDef, TypeNameMetaFieldDef,
  type DocumentNode, type FieldNode, type GraphQLField, type GraphQLObjectType, type GraphQLSchema, type OperationDefinitionNode,
  type SelectionSetNode, type ValueNode,
} from 'graphql'
import { collectFields, fragmentsOf, selectionSetsOf, type Fragments } from './graphql-fields.ts'
import { LARGEST_PAGE, USUAL_PAGE } from './post.ts'

type Variables = Readonly<Record<string, unknown>>

/** The cost of an operation: a number, or a function of its variables if one of them is the size of a page. */
export type Cost = number | ((variables: Variables) => number)

// The assumed length of lists that have no argument `first`. These are the lists of introspection, and few of them are
// longer than this in Usher's schema.
const ROWS_OF_OTHER_LISTS = 5

const introspection = new Map([SchemaMetaFieldDef, TypeMetaFieldDef, TypeNameMetaFieldDef].map((field) => [field.name, field]))

/**
 * Returns the cost of a valid operation (contract 7.8): every field counts 1 for each row that it is in, and every row
 * that is read counts 1. A list is assumed to be as long as its page may be. Aliases count like fields, fields that
 * several fragments have in common count once, and `@skip` and `@include` are ignored.
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

  // `rows` is the number of rows to assume for lists without an argument `first`. A list such as `nodes` has as many rows
  // as the page that it belongs to.
  #ofSelection (type: GraphQLObjectType, sets: SelectionSetNode[], rows: Cost): Cost {
    let sum: Cost = 0
    for (const nodes of collectFields(sets, this.#fragments).values()) sum = add(sum, this.#ofField(type, nodes, rows))
    return sum
  }

  #ofField (parent: GraphQLObjectType, nodes: FieldNode[], rows: Cost): Cost {
    const [node] = nodes as [FieldNode]
    const field = introspection.get(node.name.value) ?? parent.getFields()[node.name.value]!
    const page = this.#pageOf(field, node)
    const type = getNamedType(field.type)
    const size = page ?? rows
    const below = isObjectType(type) ? this.#ofSelection(type, selectionSetsOf(nodes), size) : 0
    return add(add(1, page ?? 0), isListType(getNullableType(field.type)) ? multiply(size, below) : below)
  }

  #pageOf ({ args }: GraphQLField<unknown, unknown>, { arguments: given }: FieldNode): Cost | undefined {
    if (!args.some(({ name }) => name === 'first')) return undefined
    const argument = given!.find(({ name }) => name.value === 'first')
    return argument ? this.#sizeOf(argument.value) : USUAL_PAGE
  }

  #sizeOf (value: ValueNode): Cost {
    if (value.kind !== Kind.VARIABLE) return clamp(value.kind === Kind.INT ? Number(value.value) : null)
    const name = value.name.value
    const definition = this.#operation.variableDefinitions!.find(({ variable }) => variable.name.value === name)
    const preset = definition?.defaultValue ? this.#sizeOf(definition.defaultValue) as number : USUAL_PAGE
    return (variables) => variables[name] === undefined ? preset : clamp(variables[name])
  }
}

// When the operation is executed, null counts as absent, and values that are too large or not numbers are rejected.
function clamp (size: unknown): number {
  if (size === null) return USUAL_PAGE
  return typeof size === 'number' && size < LARGEST_PAGE ? Math.max(size, 0) : LARGEST_PAGE
}

function add (one: Cost, other: Cost): Cost {
  if (typeof one === 'number' && typeof other === 'number') return one + other
  return (variables) => evaluate(one, variables) + evaluate(other, variables)
}

function multiply (one: Cost, other: Cost): Cost {
  if (typeof one === 'number' && typeof other === 'number') return one * other
  return (variables) => evaluate(one, variables) * evaluate(other, variables)
}
