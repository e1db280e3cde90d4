/**
 * What the host adds to users (`userFields`, `roles`) and organisations (`organizationFields`), for the types of the
 * client. An app extends it by declaration merging.
 */
export interface Register {}

/**
 * The values of the fields of the host: those of a schema of TypeBox, or the members of any other type, as the app has
 * registered them.
 */
export type FieldValues = Register extends { userFields: infer Fields } ? ValuesOf<Fields> : unknown

/** Those of organisations. */
export type OrganizationFieldValues =
  Register extends { organizationFields: infer Fields } ? ValuesOf<Fields> : unknown

type ValuesOf<Fields> = Fields extends { static: infer Values } ? Values : Fields

/** The role of a user: that of every service or of the host, if the app has registered those; otherwise any text. */
export type Role = Register extends { roles: infer Own }
  ? 'admin' | 'user' | (Own extends string ? Own : Extract<keyof Own, string>)
  : string

/** What responses have of them. What the reader may not see, and what has no value, is absent. */
export type ShownFieldValues = { [Name in keyof FieldValues]?: FieldValues[Name] }

/** Values of these fields in requests. Null removes one. */
export type ChangedFieldValues = { [Name in keyof FieldValues]?: FieldValues[Name] | null | undefined }

/** The same of organisations. */
export type ShownOrganizationFieldValues =
  { [Name in keyof OrganizationFieldValues]?: OrganizationFieldValues[Name] }
export type ChangedOrganizationFieldValues =
  { [Name in keyof OrganizationFieldValues]?: OrganizationFieldValues[Name] | null | undefined }
