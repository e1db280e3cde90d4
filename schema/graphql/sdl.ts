import { readFileSync } from 'node:fs'
import { Kind, parse, print, visit, type FieldDefinitionNode, type TypeNode } from 'graphql'
import type { Part } from '../options/parts.ts'
import type { UserField, UserFields } from '../users/user-fields.ts'

const POST_TYPES = new Set(['Post', 'PostEdge', 'PostConnection', 'CreatePostInput', 'UpdatePostInput'])
// The field that belongs to posts without returning one.
const POST_FIELD = 'deletePost'

/**
 * Returns the GraphQL schema of a mount, with the fields that the host adds to users. Without posts it has the queries
 * of users only, and neither a mutation nor a subscription.
 */
export function readSdl ({ without, userFields }: { without: readonly Part[], userFields: UserFields }): string {
  const own = readFileSync(new URL('schema.graphql', import.meta.url), 'utf8')
  return addFields(without.includes('posts') ? removePosts(own) : own, userFields)
}

function addFields (sdl: string, fields: UserFields): string {
  if (fields.length === 0) return sdl
  const members =
    fields.map((field) => `  ${JSON.stringify(describe(field))}\n  ${field.name}: ${field.graphql}\n`).join('')
  const extended = sdl.replace(/^type User \{[^}]*/m, (type) => type + members)
  return hasJson(fields) ? `"A JSON value."\nscalar JSON\n\n${extended}` : extended
}

/** Returns whether the SDL has the scalar JSON. */
export const hasJson = (fields: UserFields): boolean => fields.some(({ graphql }) => graphql === 'JSON')

const describe = ({ output }: UserField): string =>
  String(output.description).replace(/^Absent|\. Absent/, (text) => text.replace('Absent', 'Null'))

function removePosts (sdl: string): string {
  const remove = ({ name: { value } }: { name: { value: string } }) => POST_TYPES.has(value) ? null : undefined
  return print(visit(parse(sdl), {
    InputObjectTypeDefinition: remove,
    ObjectTypeDefinition: { enter: remove, leave: ({ fields }) => fields!.length === 0 ? null : undefined },
    FieldDefinition: (field) => isOfPosts(field) ? null : undefined,
  }))
}

const isOfPosts = ({ name, type }: FieldDefinitionNode): boolean =>
  name.value === POST_FIELD || POST_TYPES.has(nameOf(type))

function nameOf (type: TypeNode): string {
  return type.kind === Kind.NAMED_TYPE ? type.name.value : nameOf(type.type)
}
