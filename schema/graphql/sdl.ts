import { readFileSync } from 'node:fs'
import { Kind, parse, print, visit, type FieldDefinitionNode, type TypeNode } from 'graphql'
import type { Field, Fields } from '../fields/fields.ts'
import type { Organizations } from '../options/organizations.ts'
import type { Part } from '../options/parts.ts'
import { graphqlNameOf, type Roles } from '../options/roles.ts'
import type { UserFields } from '../users/user-fields.ts'

// The types of organisations, without which a mount lacks them.
const ofOrganizations: Removed =
  { types: new Set(['Organization', 'Membership', 'MembershipEdge', 'MembershipConnection']) }

// The types of parts that a mount may lack, and the field of each that returns none of them.
const parts = [
  {
    part: 'posts',
    types: new Set([
      'Post', 'PostEdge', 'PostConnection', 'PostCreated', 'PostUpdated', 'PostDeleted', 'PostChange', 'CreatePostInput',
      'UpdatePostInput',
    ]),
    deletion: 'deletePost',
  },
  {
    part: 'uploads',
    types: new Set(['Upload', 'UploadEdge', 'UploadConnection', 'UpdateUploadInput', 'Visibility']),
    deletion: 'deleteUpload',
  },
] as const satisfies (Removed & { part: Part })[]

interface Removed { types: ReadonlySet<string>, deletion?: string }

/** What decides about the GraphQL schema of a mount. */
interface Mount {
  without: readonly Part[]
  userFields: UserFields
  roles: Roles
  organizations: Organizations | undefined
}

/**
 * Returns the GraphQL schema of a mount, with the fields and roles that the host adds to users and organisations.
 * Without posts it has no subscription, and without posts and uploads it has the queries of users only.
 */
export function readSdl ({ without, userFields, roles, organizations }: Mount): string {
  const own = readFileSync(new URL('schema.graphql', import.meta.url), 'utf8')
  const removed: Removed[] = parts.filter(({ part }) => without.includes(part))
  const sdl = [...removed, ...organizations ? [] : [ofOrganizations]].reduce(removePart, own)
  const added = { User: userFields, ...organizations && { Organization: organizations.fields } }
  return addRoles(addFields(sdl, added), roles)
}

const addRoles = (sdl: string, roles: Roles): string => sdl.replace(/^enum Role \{[^}]*/m, (type) =>
  type + [...roles.keys()].map((name) => `  ${graphqlNameOf(name)}\n`).join(''))

function addFields (sdl: string, added: Readonly<Record<string, Fields>>): string {
  const extended = Object.entries(added).reduce(addFieldsOf, sdl)
  return hasJson(Object.values(added).flat()) ? `"A JSON value."\nscalar JSON\n\n${extended}` : extended
}

function addFieldsOf (sdl: string, [name, fields]: [type: string, fields: Fields]): string {
  if (fields.length === 0) return sdl
  const members =
    fields.map((field) => `  ${JSON.stringify(describe(field))}\n  ${field.name}: ${field.graphql}\n`).join('')
  return sdl.replace(new RegExp(`^type ${name} \\{[^}]*`, 'm'), (type) => type + members)
}

/** Returns whether the SDL has the scalar JSON for these fields. */
export const hasJson = (fields: Fields): boolean => fields.some(({ graphql }) => graphql === 'JSON')

const describe = ({ output }: Field): string =>
  String(output.description).replace(/^Absent|\. Absent/, (text) => text.replace('Absent', 'Null'))

function removePart (sdl: string, { types, deletion }: Removed): string {
  const remove = ({ name: { value } }: { name: { value: string } }) => types.has(value) ? null : undefined
  return print(visit(parse(sdl), {
    EnumTypeDefinition: remove,
    InputObjectTypeDefinition: remove,
    UnionTypeDefinition: remove,
    ObjectTypeDefinition: { enter: remove, leave: ({ fields }) => fields!.length === 0 ? null : undefined },
    FieldDefinition: ({ name, type }: FieldDefinitionNode) =>
      name.value === deletion || types.has(nameOf(type)) ? null : undefined,
  }))
}

function nameOf (type: TypeNode): string {
  return type.kind === Kind.NAMED_TYPE ? type.name.value : nameOf(type.type)
}
