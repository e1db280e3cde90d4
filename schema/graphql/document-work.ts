import { Kind, type DocumentNode, type SelectionSetNode } from 'graphql'
import { collectFields, fragmentsOf, selectionSetsOf, type Fragments } from './user-fields.ts'

/** The amount of work that the validation of a document takes. */
export interface DocumentWork {
  /** Number of fields. A field of a fragment counts once for every spread of the fragment. */
  fields: number
  /** Number of pairs of fields with the same response key. Validation compares each pair, and all fields below it. */
  pairs: number
}

const nothing: Fragments = new Map()

/**
 * Returns how much work it is to validate a document whose fragments do not spread themselves. Comparing overlapping
 * fields is quadratic in the number of fields with the same key, and happens again at every level below them.
 */
export function measureWork (document: DocumentNode): DocumentWork {
  const work = { fields: 0, pairs: 0 }
  const fragments = fragmentsOf(document)
  for (const node of document.definitions) {
    if (node.kind === Kind.OPERATION_DEFINITION) measure([node.selectionSet], fragments)
    // graphql-js also validates fragments that are never spread.
    else if (node.kind === Kind.FRAGMENT_DEFINITION) measure([node.selectionSet], nothing)
  }
  return work

  function measure (sets: SelectionSetNode[], spread: Fragments): void {
    for (const nodes of collectFields(sets, spread).values()) {
      work.fields += nodes.length
      work.pairs += nodes.length * (nodes.length - 1) / 2
      measure(selectionSetsOf(nodes), spread)
    }
  }
}
