import {
  Kind, type DocumentNode, type FieldNode, type FragmentDefinitionNode, type GraphQLCompositeType, type GraphQLSchema,
  type SelectionSetNode,
} from 'graphql'

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>

/** Returns the fragments of a document by name. */
export function fragmentsOf ({ definitions }: DocumentNode): Fragments {
  return new Map(
    definitions.filter((node) => node.kind === Kind.FRAGMENT_DEFINITION).map((node) => [node.name.value, node])
  )
}

/**
 * Returns the fields of selection sets that are executed together, including those of their fragments, by response key
 * (GraphQL 6.3.2). Fields with the same key are one field of the response. The directives `@skip` and `@include`, and
 * spreads of fragments that do not exist, are ignored.
 */
export function collectFields (sets: readonly SelectionSetNode[], fragments: Fragments): Map<string, FieldNode[]> {
  const fields = new Map<string, FieldNode[]>()
  const spread = new Set<string>()
  for (const set of sets) collect(set)
  return fields

  function collect ({ selections }: SelectionSetNode): void {
    for (const node of selections) {
      if (node.kind === Kind.FIELD) add((node.alias ?? node.name).value, node)
      else if (node.kind === Kind.INLINE_FRAGMENT) collect(node.selectionSet)
      else collectFragment(node.name.value)
    }
  }

  function collectFragment (name: string): void {
    const fragment = fragments.get(name)
    if (!fragment || spread.has(name)) return
    spread.add(name)
    collect(fragment.selectionSet)
  }

  function add (key: string, node: FieldNode): void {
    const nodes = fields.get(key)
    if (nodes) nodes.push(node)
    else fields.set(key, [node])
  }
}

/** Returns the selection sets of fields with the same response key, which are executed together. */
export function selectionSetsOf (nodes: readonly FieldNode[]): SelectionSetNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet ?? [])
}

/**
 * Returns what is selected of an interface or a union, by the type that declares the fields: the type itself, or that
 * of a fragment. Fragments whose types exclude each other are all in the result.
 */
export function selectionSetsByType (
  type: GraphQLCompositeType, sets: readonly SelectionSetNode[], fragments: Fragments, schema: GraphQLSchema
): Map<GraphQLCompositeType, SelectionSetNode[]> {
  const byType = new Map<GraphQLCompositeType, SelectionSetNode[]>()
  const spread = new Set<string>()
  for (const set of sets) divide(set, type)
  return byType

  function divide ({ selections }: SelectionSetNode, type: GraphQLCompositeType): void {
    const fields = selections.filter((node) => node.kind === Kind.FIELD)
    if (fields.length > 0) {
      byType.set(type, [...byType.get(type) ?? [], { kind: Kind.SELECTION_SET, selections: fields }])
    }
    for (const node of selections) {
      if (node.kind === Kind.INLINE_FRAGMENT) divide(node.selectionSet, typeOf(node.typeCondition?.name.value) ?? type)
      else if (node.kind === Kind.FRAGMENT_SPREAD) divideFragment(node.name.value)
    }
  }

  function divideFragment (name: string): void {
    const fragment = fragments.get(name)
    if (!fragment || spread.has(name)) return
    spread.add(name)
    divide(fragment.selectionSet, typeOf(fragment.typeCondition.name.value)!)
  }

  function typeOf (name: string | undefined): GraphQLCompositeType | undefined {
    return name === undefined ? undefined : schema.getType(name) as GraphQLCompositeType
  }
}
