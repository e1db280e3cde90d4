import { readFileSync } from 'node:fs'
import { Kind, parse, print, visit, type FieldDefinitionNode, type TypeNode } from 'graphql'
import type { Part } from './parts.ts'

const POST_TYPES = new Set(['Post', 'PostEdge', 'PostConnection', 'CreatePostInput', 'UpdatePostInput'])
// The field that belongs to posts without returning one.
const POST_FIELD = 'deletePost'

/** Returns the GraphQL schema. Without posts it has the queries of users only, and neither a mutation nor a subscription. */
export function readSdl (without: readonly Part[]): string {
  const sdl = readFileSync(new URL('schema.graphql', import.meta.url), 'utf8')
  return without.includes('posts') ? removePosts(sdl) : sdl
}

function removePosts (sdl: string): string {
  const remove = ({ name: { value } }: { name: { value: string } }) => POST_TYPES.has(value) ? null : undefined
  return print(visit(parse(sdl), {
    InputObjectTypeDefinition: remove,
    ObjectTypeDefinition: { enter: remove, leave: ({ fields }) => fields!.length === 0 ? null : undefined },
    FieldDefinition: (field) => isOfPosts(field) ? null : undefined,
  }))
}

const isOfPosts = ({ name, type }: FieldDefinitionNode): boolean => name.value === POST_FIELD || POST_TYPES.has(nameOf(type))

function nameOf (type: TypeNode): string {
  return type.kind === Kind.NAMED_TYPE ? type.name.value : nameOf(type.type)
}
