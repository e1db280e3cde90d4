import { sql, type AliasedExpression } from 'kysely'
import { noFields, toText, type UserField, type UserFields } from '../../schema/users/user-fields.ts'
import { ownUserColumns, writableUserColumns } from '../tables/index.ts'

type OwnColumn = `users.${typeof ownUserColumns[number]}`

/**
 * Returns the columns of a user's data, with the fields of the host. Their rows have the type `UserRow`, which does not
 * know the fields. A field without a value has its default.
 */
export function userColumns (fields: UserFields): OwnColumn[] {
  const own = ownUserColumns.map((column) => `users.${column}` as const)
  return [...own, ...fields.map(selectionOf) as unknown as OwnColumn[]]
}

function selectionOf ({ name, type, column, default: preset }: UserField): AliasedExpression<unknown, string> {
  const text = toText({ type }, preset)
  const stored = sql.ref(`users.${name}`)
  const value = text === null ? stored : sql`coalesce(${stored}, ${sql.lit(text)}::${sql.raw(column)})`
  // postgres.js returns a bigint as text. Every integer that is accepted is exact as a double.
  return (type === 'integer' ? sql`(${value})::double precision` : sql`${value}`).as(name)
}

/** A column that statements set, with its type in SQL. */
export interface WritableColumn { readonly name: string, readonly sqlType: string, readonly field?: UserField }

const own: readonly WritableColumn[] = Object.entries(writableUserColumns).map(([name, sqlType]) => ({ name, sqlType }))

/** Returns the columns that creating and replacing a user set. */
export const writableColumns = forFields((fields): readonly WritableColumn[] =>
  [...own, ...fields.map((field) => ({ name: field.name, sqlType: field.column, field }))])

/** Returns the value of a column as the text that PostgreSQL casts to its type, or null. */
export function textOf ({ field }: WritableColumn, value: unknown): string | null {
  return field ? toText(field, value) : value?.toString() ?? null
}

/** Returns a function that creates something for the fields of a mount once. */
export function forFields<Result> (create: (fields: UserFields) => Result): (fields?: UserFields) => Result {
  const created = new WeakMap<UserFields, Result>()
  return (fields = noFields) => {
    const known = created.get(fields)
    if (known !== undefined) return known
    const result = create(fields)
    created.set(fields, result)
    return result
  }
}
