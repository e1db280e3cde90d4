import { GraphQLError, Kind, parse, specifiedRules, validate, type DocumentNode, type FragmentDefinitionNode, type GraphQLSchema, type SelectionSetNode } from 'graphql'

/** What a document may hold at the most; introspection goes deeper, and is bounded by its fields. */
export const limits = { tokens: 1000, depth: 10, introspectionDepth: 20, fields: 1000, aliases: 50, directives: 50 } as const

/** What a document over a limit is refused with. */
export const refused = (message: string) => new GraphQLError(message, { extensions: { code: 'GRAPHQL_LIMIT_EXCEEDED' } })

/**
 * Refuses a document that would cost too much, before it is validated: one pass over it, each fragment counted
 * once and multiplied, so that a bomb costs no more than its text. Throws a `GraphQLError`.
 */
export function checkLimits ({ definitions }: DocumentNode): void {
  const fragments = new Map(definitions.filter((node) => node.kind === Kind.FRAGMENT_DEFINITION).map((node) => [node.name.value, node]))
  const measured = new Map<string, Measure>()
  const entered = new Set<string>()
  for (const node of definitions) {
    if (node.kind === Kind.OPERATION_DEFINITION) assess(measure(node.selectionSet, node.directives!.length))
  }

  function measure (set: SelectionSetNode, directives = 0): Measure {
    const sum = { fields: 0, aliases: 0, directives, depth: 0, introspectionDepth: 0 }
    for (const node of set.selections) {
      sum.directives += node.directives!.length
      if (node.kind === Kind.FIELD) {
        sum.fields++
        if (node.alias) sum.aliases++
        const isIntrospection = node.name.value.startsWith('__')
        const below = node.selectionSet ? measure(node.selectionSet) : none
        add(sum, below)
        if (isIntrospection) sum.introspectionDepth = Math.max(sum.introspectionDepth, below.depth + 1)
        else sum.depth = Math.max(sum.depth, below.depth + 1)
      } else {
        const below = node.kind === Kind.INLINE_FRAGMENT ? measure(node.selectionSet) : measureFragment(fragments.get(node.name.value))
        add(sum, below)
        sum.depth = Math.max(sum.depth, below.depth)
      }
    }
    return sum
  }

  function measureFragment (fragment: FragmentDefinitionNode | undefined): Measure {
    // Validation says what is wrong with a fragment that is not there.
    if (!fragment) return none
    const name = fragment.name.value
    if (entered.has(name)) throw refused(`Fragment ${name} spreads itself`)
    let known = measured.get(name)
    if (!known) {
      entered.add(name)
      known = measure(fragment.selectionSet, fragment.directives!.length)
      entered.delete(name)
      measured.set(name, known)
    }
    return known
  }
}

type Measure = { fields: number, aliases: number, directives: number, depth: number, introspectionDepth: number }

const none: Measure = { fields: 0, aliases: 0, directives: 0, depth: 0, introspectionDepth: 0 }

function add (sum: Measure, below: Measure): void {
  sum.fields += below.fields
  sum.aliases += below.aliases
  sum.directives += below.directives
  sum.introspectionDepth = Math.max(sum.introspectionDepth, below.introspectionDepth)
}

function assess (measure: Measure): void {
  for (const what of ['depth', 'introspectionDepth'] as const) {
    if (measure[what] > limits[what]) throw refused(`The document is deeper than ${limits[what]} levels`)
  }
  for (const what of ['fields', 'aliases', 'directives'] as const) {
    if (measure[what] > limits[what]) throw refused(`The document has more than ${limits[what]} ${what}`)
  }
}

/**
 * Parses and validates a document that comes by a socket, where mercurius does not. Throws a `GraphQLError`,
 * the first problem.
 */
export function readDocument (schema: GraphQLSchema, source: string): DocumentNode {
  const document = parse(source, { maxTokens: limits.tokens })
  checkLimits(document)
  const [problem] = validate(schema, document, specifiedRules, { maxErrors: 1 })
  if (problem) throw problem
  return document
}
