import { toText, type Field } from '../../schema/fields/fields.ts'
import {
  members, shownMembers, writableMembers, type Members, type ShownMember, type WritableMember,
} from '../../schema/users/members.ts'
import { noFields, type UserFields } from '../../schema/users/user-fields.ts'
import { selectField } from '../fields/field-columns.ts'

type OwnColumn = { [Name in ShownMember]: Members[Name]['column'] extends Name
  ? `users.${Name}`
  : `users.${Members[Name]['column']} as ${Name}` }[ShownMember] | 'users.row_version as rowVersion'

const ownColumns: readonly OwnColumn[] = [...shownMembers.map((name) => {
  const { column } = members[name]
  return (column === name ? `users.${column}` : `users.${column} as ${name}`) as OwnColumn
}), 'users.row_version as rowVersion']

/**
 * Returns the columns of a user's data, with the fields of the host. Their rows have the type `UserRow`, which does not
 * know the fields. A field without a value has its default.
 */
export function userColumns (fields: UserFields): OwnColumn[] {
  return [...ownColumns, ...fields.map((field) => selectField('users', field)) as unknown as OwnColumn[]]
}

/**
 * A column that creating and replacing a user set, with its type in SQL. A value that is absent becomes null, except
 * that a new user has the role `user` and a replacement without a role keeps it.
 */
export interface WritableColumn {
  /** The name of the member in requests. */
  readonly name: string
  readonly column: string
  readonly sqlType: string
  readonly field?: Field
}

/** The columns that Usher has for them. Statements that name columns at runtime have their types from these. */
export type OwnWritableColumn = Members[WritableMember]['column']

const own: readonly WritableColumn[] =
  writableMembers.map((name) => ({ name, column: members[name].column, sqlType: members[name].sqlType }))

/** Returns the columns that creating and replacing a user set. The statements are derived from this list. */
export const writableColumns = forFields((fields): readonly WritableColumn[] =>
  [...own, ...fields.map((field) => ({ name: field.name, column: field.name, sqlType: field.column, field }))])

const withOwnRules: ReadonlySet<string> = new Set<WritableMember>(['name', 'email', 'role'])

/** Returns those of them that mean nothing to Usher: a sign-up keeps their values as JSON. */
export const plainColumns = forFields((fields) => writableColumns(fields).filter(({ name }) => !withOwnRules.has(name)))

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
