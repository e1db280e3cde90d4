import {
  GraphQLError, Kind, type DocumentNode, type FieldNode, type FragmentDefinitionNode, type SelectionSetNode,
} from 'graphql'
import { measureWork, type DocumentWork } from './document-work.ts'
import { fragmentsOf } from './user-fields.ts'
import { defineError } from '../http/errors.ts'

export const OperationTooCostly = defineError(
  'OPERATION_TOO_COSTLY', 'The operation costs more than %s: ask for fewer rows or fields', 400
)
export const ResponseTooLarge =
  defineError('OPERATION_TOO_COSTLY', 'The response would be larger than %s bytes: ask for fewer rows or fields', 400)
export const TooManyErrors = defineError(
  'TOO_MANY_ERRORS', 'More than %s fields have failed: the other errors are left out', 400
)
export const TooManyDocuments = defineError(
  'TOO_MANY_DOCUMENTS', 'Too many new GraphQL documents: use variables, or try again later', 429
)
export const TooManySubscriptions =
  defineError('TOO_MANY_SUBSCRIPTIONS', 'This network runs too many different subscriptions: stop some first', 429)

/**
 * The limits of a GraphQL document. Introspection may be deeper than other fields; the number of fields bounds it as
 * well.
 */
export const limits = {
  tokens: 1000,
  depth: 10,
  introspectionDepth: 20,
  fields: 500,
  // Pairs of fields with the same response key. 2,000 pairs let 63 fragments select the same field of the same object.
  pairs: 2000,
  aliases: 50,
  // In characters. It is limited because the response repeats an alias for every row.
  aliasLength: 100,
  directives: 50,
  // graphql-js counts the lines before a problem of the document for each problem: 100 of them after 200,000 line
  // breaks took 1.3 s.
  lines: 10_000,
  // All values in the variables: objects, lists and their members.
  values: 1000,
  // The length of an error message in characters. It is limited because some messages quote the document.
  message: 2000,
  // Problems of a document.
  errors: 10,
  // Errors of fields in a response. A field of each row of the largest page may fail.
  failures: 100,
} as const

/** Returns the error for a document that exceeds a limit. */
export const limitExceeded = (message: string) =>
  new GraphQLError(message, { extensions: { code: 'GRAPHQL_LIMIT_EXCEEDED' } })

/**
 * Checks a document against the limits before it is validated. Returns the amount of work that its validation takes.
 * Throws a `GraphQLError` if the document exceeds a limit.
 *
 * The first pass visits every node once: each fragment is measured once, and the result is added at every spread. So
 * fragments that multiply each other are rejected in a time proportional to the length of the document.
 */
export function checkLimits (document: DocumentNode): DocumentWork {
  const { definitions } = document
  const fragments = fragmentsOf(document)
  const measured = new Map<string, Measure>()
  const entered = new Set<string>()
  for (const node of definitions) {
    if (node.kind === Kind.OPERATION_DEFINITION) assess(measure(node.selectionSet, node.directives!.length))
  }
  const work = measureWork(document)
  if (work.pairs > limits.pairs) {
    throw limitExceeded(`The document has more than ${limits.pairs} pairs of fields with the same name`)
  }
  return work

  function measure (set: SelectionSetNode, directives = 0): Measure {
    const sum = { fields: 0, aliases: 0, directives, depth: 0, introspectionDepth: 0 }
    for (const node of set.selections) {
      sum.directives += node.directives!.length
      if (node.kind === Kind.FIELD) {
        sum.fields++
        if (node.alias) sum.aliases++
        checkAlias(node)
        const isIntrospection = node.name.value.startsWith('__')
        const below = node.selectionSet ? measure(node.selectionSet) : none
        add(sum, below)
        if (isIntrospection) sum.introspectionDepth = Math.max(sum.introspectionDepth, below.depth + 1)
        else sum.depth = Math.max(sum.depth, below.depth + 1)
      } else {
        const below = node.kind === Kind.INLINE_FRAGMENT
          ? measure(node.selectionSet)
          : measureFragment(fragments.get(node.name.value))
        add(sum, below)
        sum.depth = Math.max(sum.depth, below.depth)
      }
    }
    return sum
  }

  function measureFragment (fragment: FragmentDefinitionNode | undefined): Measure {
    // The fragment does not exist. The validation of the document reports this.
    if (!fragment) return none
    const name = fragment.name.value
    if (entered.has(name)) throw limitExceeded(`Fragment ${name} spreads itself`)
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
    if (measure[what] > limits[what]) throw limitExceeded(`The document is deeper than ${limits[what]} levels`)
  }
  for (const what of ['fields', 'aliases', 'directives'] as const) {
    if (measure[what] > limits[what]) throw limitExceeded(`The document has more than ${limits[what]} ${what}`)
  }
}

function checkAlias ({ alias }: FieldNode): void {
  if (alias && alias.value.length > limits.aliasLength) {
    throw limitExceeded(`An alias is longer than ${limits.aliasLength} characters`)
  }
}
