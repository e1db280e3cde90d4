import {
  Kind, type GraphQLObjectType, type GraphQLResolveInfo, type GraphQLSchema, type SelectionSetNode,
} from 'graphql'
import { postFields, type PostField } from '../../../db/posts/posts.ts'
import { hasRows, hostFieldOf } from '../../../schema/users/host-fields.ts'

// Caches the fields of each selection. A compiled document always passes the same nodes.
const selected = new WeakMap<readonly object[], readonly PostField[]>()

/**
 * Returns the fields of posts that must be read for a list. These are all whose names appear anywhere below it in the
 * document, even if a directive excludes them or they belong to another type.
 */
export function selectedPostFields ({ fieldNodes, fragments, schema }: GraphQLResolveInfo): readonly PostField[] {
  let fields = selected.get(fieldNodes)
  if (fields) return fields
  const names = new Set<string>()
  // A fragment may be spread in many places.
  const walked = new Set<SelectionSetNode>()
  for (const { selectionSet } of fieldNodes) walk(selectionSet)
  if (names.has('author')) names.add('authorId')
  if (names.has('publishedAt')) names.add('createdAt')
  if (names.has('etag')) names.add('rowVersion')
  if (hasHostFieldOfPosts(schema, names)) for (const field of postFields) names.add(field)
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

/**
 * Returns whether a field of the host is among these that belongs to posts. Its resolver may need everything about a
 * post.
 */
export function hasHostFieldOfPosts (schema: GraphQLSchema, names: ReadonlySet<string>): boolean {
  const type = schema.getType('Post')
  // A mount without posts has no such type, or the host has its own.
  if (!type || !hasRows(type)) return false
  return Object.values((type as GraphQLObjectType).getFields())
    .some((field) => hostFieldOf(field) && names.has(field.name))
}
