import { Kind, type GraphQLResolveInfo, type SelectionSetNode } from 'graphql'
import { postFields, type PostField } from '../../db/posts.ts'

// A compiled document keeps its nodes: they are walked once.
const selected = new WeakMap<readonly object[], readonly PostField[]>()

/**
 * The fields of posts that are to be read for a list: those that stand anywhere below it in the document, also where
 * a directive leaves them out, or where they are another's.
 */
export function selectedPostFields ({ fieldNodes, fragments }: GraphQLResolveInfo): readonly PostField[] {
  let fields = selected.get(fieldNodes)
  if (fields) return fields
  const names = new Set<string>()
  // A fragment may stand in many places.
  const walked = new Set<SelectionSetNode>()
  for (const { selectionSet } of fieldNodes) walk(selectionSet)
  if (names.has('author')) names.add('authorId')
  if (names.has('cursor')) names.add('position').add('epoch')
  fields = postFields.filter((field) => names.has(field))
  selected.set(fieldNodes, fields)
  return fields

  function walk (set: SelectionSetNode | undefined): void {
    if (!set || walked.has(set)) return
    walked.add(set)
    for (const node of set.selections) {
      walk(node.kind === Kind.FRAGMENT_SPREAD ? fragments[node.name.value]!.selectionSet : node.selectionSet)
      if (node.kind === Kind.FIELD) names.add(node.name.value)
    }
  }
}
