import { ConfirmSignUp, SignUp } from '../mail-links/sign-ups.ts'
import { CreateUser, PatchUser, ReplaceUser, User } from './users.ts'
import { namesOfRoles, type Roles } from '../options/roles.ts'
import { roles as ownRoles } from './members.ts'
import type { UserField, UserFields } from './user-fields.ts'

/** What a host adds to users: fields and roles. */
export interface UserExtension { readonly userFields: UserFields, readonly roles: Roles }

/** Returns whether a host adds something to the schemas of users. */
export const isExtended = ({ userFields, roles }: UserExtension): boolean => userFields.length > 0 || roles.size > 0

/**
 * Returns a function that adds the fields and the roles of the host to the schemas of users and of requests about them,
 * wherever they occur in a schema. The types of the result do not know them.
 */
export function createExtension ({ userFields, roles }: UserExtension): <Schema>(schema: Schema) => Schema {
  const [addFields, addRoles] = [extendFields(userFields), extendRoles(roles)]
  return (schema) => addRoles(addFields(schema))
}

function extendRoles (roles: Roles): <Schema>(schema: Schema) => Schema {
  if (roles.size === 0) return (schema) => schema
  const names = namesOfRoles(roles)
  return (schema) => replace(schema, (node) => Reflect.get(node, 'enum') === ownRoles ? { ...node, enum: names } : undefined)
}

function extendFields (fields: UserFields): <Schema>(schema: Schema) => Schema {
  if (fields.length === 0) return (schema) => schema
  const inputs = propertiesOf(fields, 'input')
  const extended = new Map<unknown, object>([[User, extend(User, propertiesOf(fields, 'output'))]])
  for (const schema of [CreateUser, ReplaceUser, PatchUser]) extended.set(schema, extend(schema, inputs))
  const ofOwner = propertiesOf(fields.filter(({ write }) => write === 'owner'), 'input')
  for (const schema of [SignUp, ConfirmSignUp]) extended.set(schema, extend(schema, ofOwner))
  return (schema) => replace(schema, (node) => extended.get(node))
}

function propertiesOf (fields: UserFields, kind: keyof Pick<UserField, 'input' | 'output'>): object {
  return Object.fromEntries(fields.map((field) => [field.name, field[kind]]))
}

const extend = (schema: { properties: object }, properties: object): object =>
  ({ ...schema, properties: { ...schema.properties, ...properties } })

/**
 * Returns a schema of a response for the serializer. It writes what is stored, which may not match the schema of a
 * field any more: texts without regard to their format, and JSON with every member.
 */
export function forSerializer<Schema> (schema: Schema): Schema {
  return replace(schema, ({ userField }: { userField?: string }) =>
    userField === undefined ? undefined : userField === 'json' ? {} : { type: userField })
}

function replace<Node> (node: Node, replacementOf: (node: object) => object | undefined): Node {
  if (typeof node !== 'object' || node === null) return node
  const replacement = replacementOf(node)
  if (replacement) return replacement as Node
  if (Array.isArray(node)) return node.map((one) => replace(one, replacementOf)) as Node
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, replace(value, replacementOf)])) as Node
}
