import { withoutFields, type Field, type FieldsSchema, type ValuesOfFields } from '../fields/fields.ts'
import type { Register } from '../options/register.ts'

/** Who may read or write a field. An owner is the user whose record it is. Admins may read and write every field. */
export type FieldAudience = 'anyone' | 'owner' | 'admin'

/** A field that the host adds to users. */
export interface UserField extends Field {
  readonly read: FieldAudience
  readonly write: Exclude<FieldAudience, 'anyone'>
}

export type UserFields = readonly UserField[]

export const noFields: UserFields = Object.freeze([])

/** The values of the fields that the host has registered: see `Register`. */
export type FieldValues =
  Register extends { userFields: infer Schema extends FieldsSchema } ? ValuesOfFields<Schema> : unknown

/** An actor, or a user. */
interface Person { readonly id: string, readonly role: string }

/** Values of these fields for a new user. */
export type NewFieldValues = { [Name in keyof FieldValues]?: FieldValues[Name] | undefined }

/** Values of these fields for a change. Null removes one. */
export type ChangedFieldValues = { [Name in keyof FieldValues]?: FieldValues[Name] | null | undefined }

/** The relation of an actor to the record of a user, which decides which fields the actor may write. */
export type Writer = 'admin' | 'owner' | 'other'

/** Returns the relation of an actor to the record of a user. The creator of a user is not its owner. */
export function writerOf ({ id, role }: Person, userId?: string): Writer {
  return role === 'admin' ? 'admin' : id === userId?.toLowerCase() ? 'owner' : 'other'
}

const mayWrite = ({ write }: UserField, writer: Writer): boolean => writer === 'admin' || writer === write

/**
 * Returns the input without the fields that the writer may not set. They are ignored rather than rejected, so that what
 * GET returns can be sent back.
 */
export function withoutProtected<Input extends object> (fields: UserFields, input: Input, writer: Writer): Input {
  return withoutFields(fields.filter((field) => !mayWrite(field, writer)), input)
}

/** Returns the fields that a writer may set. */
export const writableFields = (fields: UserFields, writer: Writer): UserFields =>
  writer === 'admin' ? fields : fields.filter((field) => mayWrite(field, writer))

/** Returns the fields that a reader may see in the record of a user. */
export function readableFields (fields: UserFields, reader: Person | null, userId: string): UserFields {
  if (reader?.role === 'admin') return fields
  const isOwner = reader?.id === userId
  return fields.filter(({ read }) => read === 'anyone' || (read === 'owner' && isOwner))
}

/** Returns whether anyone may see all fields. */
export const areOpen = (fields: UserFields): boolean => fields.every(({ read }) => read === 'anyone')
