import type { Static, TObject } from '@sinclair/typebox'
import type { Register } from '../options/register.ts'

/** Who may read or write a field. An owner is the user whose record it is. Admins may read and write every field. */
export type FieldAudience = 'anyone' | 'owner' | 'admin'

type JsonSchema = Readonly<Record<string, unknown>>

/** A field that the host adds to users: a nullable column of the same name. */
export interface UserField {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'json'
  /** The type of the column. */
  readonly column: string
  /** The type of the member in the SDL. */
  readonly graphql: string
  /** The maximum size of a value, in bytes. */
  readonly bytes: number
  readonly read: FieldAudience
  readonly write: Exclude<FieldAudience, 'anyone'>
  /** The value of users without one; undefined if there is none. */
  readonly default: unknown
  /** What the console calls it; undefined for its name. */
  readonly title: string | undefined
  readonly description: string | undefined
  /** The schema of the member in requests, where null stands for no value. */
  readonly input: JsonSchema
  /** The schema of the member in responses. `userField` is the type again, for the serializer. */
  readonly output: JsonSchema
}

export type UserFields = readonly UserField[]

export const noFields: UserFields = Object.freeze([])

/** An object of `@sinclair/typebox`, or of its successor `typebox`. */
export interface FieldsSchema { readonly type: 'object', readonly properties: Readonly<Record<string, object>> }

/** The values of the fields that the host has registered: see `Register`. */
export type FieldValues = Register extends { userFields: infer Fields extends FieldsSchema }
  ? Fields extends TObject ? Static<Fields> : ObjectOf<Fields['properties']>
  : unknown

// What `Static` of `typebox` returns, for the kinds of schemas that fields may have. The package need not be installed.
type ObjectOf<Properties> =
  { [Name in keyof Properties as Properties[Name] extends Optional ? never : Name]: ValueOf<Properties[Name]> } &
  { [Name in keyof Properties as Properties[Name] extends Optional ? Name : never]?: ValueOf<Properties[Name]> }
interface Optional { readonly '~optional': true }
type ValueOf<Schema> =
  Schema extends { const: infer Value } ? Value :
    Schema extends { enum: readonly (infer Value)[] } ? Value :
      Schema extends { anyOf: readonly (infer Option)[] } ? ValueOf<Option> :
        Schema extends { type: 'array', items: infer Item } ? ValueOf<Item>[] :
          Schema extends { type: 'object', properties: infer Properties } ? ObjectOf<Properties> :
            Schema extends { type: infer Name extends keyof Primitives } ? Primitives[Name] : unknown
interface Primitives { string: string, integer: number, number: number, boolean: boolean, null: null }

/** An actor, or a user. */
interface Person { readonly id: string, readonly role: string }

/** Returns what people call a field: its title, or its name in words. `favoriteColor` is “Favorite color”. */
export function labelOf ({ name, title }: Pick<UserField, 'name' | 'title'>): string {
  if (title !== undefined) return title
  const words = name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`
}

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
  const ignored = fields.filter((field) => field.name in input && !mayWrite(field, writer))
  if (ignored.length === 0) return input
  const names = new Set(ignored.map(({ name }) => name))
  return Object.fromEntries(Object.entries(input).filter(([name]) => !names.has(name))) as Input
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

/** Returns a copy of a user without the fields that have no value. */
export function withoutEmpty<User extends object> (fields: UserFields, user: User): User {
  const names = new Set(fields.map(({ name }) => name))
  return Object.fromEntries(Object.entries(user).filter(([name, value]) => value !== null || !names.has(name))) as User
}

/** Returns whether anyone may see all fields. */
export const areOpen = (fields: UserFields): boolean => fields.every(({ read }) => read === 'anyone')

/**
 * Returns the value of a field as the text that PostgreSQL casts to the type of its column. Null stands for no value.
 */
export function toText ({ type }: Pick<UserField, 'type'>, value: unknown): string | null {
  if (value === undefined || value === null) return null
  return type === 'json' ? JSON.stringify(value) : String(value)
}
