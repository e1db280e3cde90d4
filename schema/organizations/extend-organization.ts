import { replaceSchemas, withFields } from '../fields/extend.ts'
import type { OrganizationFields } from './organization-fields.ts'
import { CreateOrganization, Organization, OwnOrganization, PatchOrganization } from './organizations.ts'

/**
 * Returns a function that adds the fields of the host to the schemas of organisations and of requests about them,
 * wherever they occur in a schema. The types of the result do not know them.
 */
export function createOrganizationExtension (fields: OrganizationFields): <Schema>(schema: Schema) => Schema {
  if (fields.length === 0) return (schema) => schema
  const extended = new Map<object, object>([
    ...[Organization, OwnOrganization].map((schema) => [schema, withFields(schema, fields, 'output')] as const),
    ...[CreateOrganization, PatchOrganization].map((schema) => [schema, withFields(schema, fields, 'input')] as const),
  ])
  return (schema) => replaceSchemas(schema, (node) => extended.get(node))
}
