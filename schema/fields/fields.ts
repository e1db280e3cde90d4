import type { Static, TObject } from '@sinclair/typebox'

type JsonSchema = Readonly<Record<string, unknown>>

/** A field that the host adds to users or organisations: a nullable column of the same name. */
export interface Field {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'json'
  /** The type of the column. */
  readonly column: string
  /** The type of the member in the SDL. */
  readonly graphql: string
  /** The maximum size of a value, in bytes. */
  readonly bytes: number
  /** The value of records without one; undefined if there is none. */
  readonly default: unknown
  /** What the console calls it; undefined for its name. */
  readonly title: string | undefined
  readonly description: string | undefined
  /** The schema of the member in requests, where null stands for no value. */
  readonly input: JsonSchema
  /** The schema of the member in responses. `hostField` is the type again, for the serializer. */
  readonly output: JsonSchema
}

export type Fields = readonly Field[]

/** An object of `@sinclair/typebox`, or of its successor `typebox`. */
export interface FieldsSchema { readonly type: 'object', readonly properties: Readonly<Record<string, object>> }

/** The values of the fields that a schema describes. */
export type ValuesOfFields<Schema extends FieldsSchema> =
  Schema extends TObject ? Static<Schema> : ObjectOf<Schema['properties']>

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

/** Returns what people call a field: its title, or its name in words. `favoriteColor` is “Favorite color”. */
export function labelOf ({ name, title }: Pick<Field, 'name' | 'title'>): string {
  if (title !== undefined) return title
  const words = name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`
}

/** Returns the input without these fields. */
export function withoutFields<Input extends object> (fields: Fields, input: Input): Input {
  const names = new Set(fields.map(({ name }) => name).filter((name) => name in input))
  if (names.size === 0) return input
  return Object.fromEntries(Object.entries(input).filter(([name]) => !names.has(name))) as Input
}

/** Returns a copy of a record with only those of all fields that are shown and that have a value. */
export function showFields<Shown extends object> (all: Fields, shown: Fields, record: Shown): Shown {
  const copy = { ...record }
  for (const { name } of all) Reflect.deleteProperty(copy, name)
  for (const { name } of shown) {
    const value: unknown = Reflect.get(record, name)
    if (value !== null && value !== undefined) Reflect.set(copy, name, value)
  }
  return copy
}

/** Returns what entity tags of records with these fields depend on, beside the values. */
export const shapeOf = (fields: Fields): unknown[] =>
  fields.map(({ name, type, default: preset }) => [name, type, preset])

/** Returns a copy of a record without the fields that have no value. */
export function withoutEmpty<Shown extends object> (fields: Fields, record: Shown): Shown {
  const names = new Set(fields.map(({ name }) => name))
  const entries = Object.entries(record).filter(([name, value]) => value !== null || !names.has(name))
  return Object.fromEntries(entries) as Shown
}

/** Returns the maximum size of the values of a record, in bytes. */
export const bytesOf = (fields: Fields): number => fields.reduce((sum, { bytes }) => sum + bytes, 0)

/**
 * Returns the value of a field as the text that PostgreSQL casts to the type of its column. Null stands for no value.
 */
export function toText ({ type }: Pick<Field, 'type'>, value: unknown): string | null {
  if (value === undefined || value === null) return null
  return type === 'json' ? JSON.stringify(value) : String(value)
}
