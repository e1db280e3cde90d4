import { withoutFields, type Field, type FieldsSchema, type ValuesOfFields } from '../fields/fields.ts'
import { fieldsOfColumns, readFields, type FieldKind } from '../fields/read-fields.ts'
import type { Register } from '../options/register.ts'
import { OwnOrganization } from './organizations.ts'

/**
 * Who may read or write a field of an organisation: `member` is whoever may read the organisation, or may change it.
 * Admins of the service may read and write every field.
 */
export type OrganizationAudience = 'member' | 'admin'

/** A field that the host adds to organisations. */
export interface OrganizationField extends Field {
  readonly read: OrganizationAudience
  readonly write: OrganizationAudience
}

export type OrganizationFields = readonly OrganizationField[]

/** The values of the fields that the host has registered: see `Register`. */
export type OrganizationFieldValues =
  Register extends { organizationFields: infer Schema extends FieldsSchema } ? ValuesOfFields<Schema> : unknown

/** Values of these fields for a new organisation. */
export type NewOrganizationFieldValues =
  { [Name in keyof OrganizationFieldValues]?: OrganizationFieldValues[Name] | undefined }

/** Values of these fields for a change. Null removes one. */
export type ChangedOrganizationFieldValues =
  { [Name in keyof OrganizationFieldValues]?: OrganizationFieldValues[Name] | null | undefined }

const kind: FieldKind<OrganizationAudience, OrganizationAudience> = {
  option: 'organizations.fields',
  records: 'organisations',
  reserved: [
    ...Object.keys(OwnOrganization.properties), 'rowVersion', 'version', 'etag', 'ownerId', 'userId', 'members',
    'invitations', 'place', 'bytes',
  ],
  readers: { member: undefined, admin: 'admins of the service' },
  writers: {
    member: 'members who may change the organisation, and admins of the service,', admin: 'admins of the service',
  },
  defaults: { read: 'member', write: 'admin' },
}

const none: OrganizationFields = Object.freeze([])

/** Returns the fields of the option `organizations.fields`. Throws an `Error` that names the field. */
export const readOrganizationFields = (given: unknown): OrganizationFields =>
  given === undefined ? none : readFields(given, kind)

/** Returns the fields that columns of organisations are, for whoever does not know the option. */
export const organizationFieldsOfColumns = (given: readonly { name: string, type: string }[]): OrganizationFields =>
  fieldsOfColumns(kind, given).map((field) => ({ ...field, read: 'admin', write: 'admin' }))

/** Returns the fields that somebody sees who may read an organisation. */
export const readableFields = (fields: OrganizationFields, isAdmin: boolean): OrganizationFields =>
  isAdmin ? fields : fields.filter(({ read }) => read === 'member')

/** Returns the fields that somebody may set who may change an organisation. */
export const writableFields = (fields: OrganizationFields, isAdmin: boolean): OrganizationFields =>
  isAdmin ? fields : fields.filter(({ write }) => write === 'member')

/** Returns the input without the fields that are ignored, because the writer is no admin of the service. */
export const withoutProtected = <Input extends object>(
  fields: OrganizationFields, input: Input, isAdmin: boolean
): Input => isAdmin ? input : withoutFields(fields.filter(({ write }) => write === 'admin'), input)
