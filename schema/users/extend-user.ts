import { replaceSchemas, withFields } from '../fields/extend.ts'
import { ConfirmSignUp, SignUp } from '../mail-links/sign-ups.ts'
import { CreateUser, PatchUser, ReplaceUser, User } from './users.ts'
import { namesOfRoles, type Roles } from '../options/roles.ts'
import { roles as ownRoles } from './members.ts'
import { writableFields, type UserFields } from './user-fields.ts'

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
  return (schema) => replaceSchemas(schema, (node) => Reflect.get(node, 'enum') === ownRoles ? { ...node, enum: names } : undefined)
}

function extendFields (fields: UserFields): <Schema>(schema: Schema) => Schema {
  if (fields.length === 0) return (schema) => schema
  const extended = new Map<object, object>([[User, withFields(User, fields, 'output')]])
  for (const schema of [CreateUser, ReplaceUser, PatchUser]) extended.set(schema, withFields(schema, fields, 'input'))
  const ofOwner = writableFields(fields, 'owner')
  for (const schema of [SignUp, ConfirmSignUp]) extended.set(schema, withFields(schema, ofOwner, 'input'))
  return (schema) => replaceSchemas(schema, (node) => extended.get(node))
}
