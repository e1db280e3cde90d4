import { Kind, type DocumentNode, type SelectionSetNode } from 'graphql'
import { collectFields, fragmentsOf, selectionSetsOf, type Fragments } from './graphql-fields.ts'

/** What the validation of a document has to look at. */
export interface DocumentWork {
  /** Fields, counted once for every place where their fragment is spread. */
  fields: number
  /** Pairs of fields with the same response key: each is compared, with all fields below it. */
  pairs: number
}

const nothing: Fragments = new Map()

/**
 * Returns how much work it is to validate a document whose fragments do not spread themselves. Comparing overlapping fields
 * is quadratic in the number of fields with the same key, and happens again at every level below them.
 */
export function measureWork (document: DocumentNode): DocumentWork {
  const work = { fields: 0, pairs: 0 }
  const fragments = fragmentsOf(document)
  for (const node of document.definitions) {
    if (node.kind === Kind.OPERATION_DEFINITION) measure([node.selectionSet], fragments)
    // A fragment that nothing spreads is validated, too.
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
