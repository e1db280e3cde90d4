import { sql, type AliasedExpression } from 'kysely'
import { toText, type Field, type Fields } from '../../schema/fields/fields.ts'
import type { Database } from '../tables/index.ts'

/** What hosts add fields to. */
export interface AddedFields { readonly users?: Fields, readonly organizations?: Fields | undefined }

/** A table to which hosts add fields. */
export type FieldTable = keyof AddedFields

const options: Readonly<Record<FieldTable, string>> = { users: 'userFields', organizations: 'organizations.fields' }

/** A field that needs a column. */
export interface NewColumn { readonly table: FieldTable, readonly field: Pick<Field, 'name' | 'column'> }

/** A column of a table: its name, its type in SQL, and whether it may not be null. */
export interface ColumnRow { name: string, type: string, required: boolean }

/**
 * Returns the fields without a column. Throws an `Error` that says what to do if a column has another type than its
 * field.
 */
export async function listMissingColumns (db: Database, schema: string, added: AddedFields): Promise<NewColumn[]> {
  const { users = [], organizations = [] } = added
  return [
    ...await listMissing(db, schema, 'users', users), ...await listMissing(db, schema, 'organizations', organizations),
  ]
}

async function listMissing (db: Database, schema: string, table: FieldTable, fields: Fields): Promise<NewColumn[]> {
  if (fields.length === 0) return []
  const columns = new Map((await listColumns(db, schema, table)).map((row) => [row.name, row]))
  return fields.filter(({ name, column }) => {
    const found = columns.get(name)
    if (!found) return true
    const [option, shown] = [`${options[table]}.${name}`, `"${schema}".${table}`]
    if (found.type !== column) {
      throw new Error(`usher: ${option} needs a column of the type ${column}, but ${shown} has a column "${name}" of the type ${found.type}: ` +
        `give the field another name, or change the column (alter table ${shown} alter column "${name}" type ${column} using …) or drop it`)
    }
    if (found.required) {
      throw new Error(
        `usher: ${option} needs a column that may be null: alter table ${shown} alter column "${name}" drop not null`
      )
    }
    return false
  }).map((field) => ({ table, field }))
}

/** Adds a nullable column for each field. No row is rewritten. */
export async function addColumns (db: Database, schema: string, added: readonly NewColumn[]): Promise<void> {
  for (const { table, field: { name, column } } of added) {
    await sql`alter table ${sql.id(schema, table)} add column ${sql.id(name)} ${sql.raw(column)}`.execute(db)
  }
}

/**
 * Returns the columns of a table. This reads the catalogue tables, because `information_schema` only shows what the
 * database user may access.
 */
export async function listColumns (db: Database, schema: string, table: FieldTable): Promise<ColumnRow[]> {
  const { rows } = await sql<ColumnRow>`
    select attname as name, format_type(atttypid, atttypmod) as type, attnotnull as required
    from pg_attribute join pg_class on pg_class.oid = attrelid join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = ${sql.lit(schema)} and relname = ${sql.lit(table)} and attnum > 0 and not attisdropped`.execute(db)
  return rows
}

/** Returns the column of a field as it is selected: without a value, it has its default. */
export function selectField (
  table: FieldTable, { name, type, column, default: preset }: Field
): AliasedExpression<unknown, string> {
  const text = toText({ type }, preset)
  const stored = sql.ref(`${table}.${name}`)
  const value = text === null ? stored : sql`coalesce(${stored}, ${sql.lit(text)}::${sql.raw(column)})`
  // postgres.js returns a bigint as text. Every integer that is accepted is exact as a double.
  return (type === 'integer' ? sql`(${value})::double precision` : sql`${value}`).as(name)
}
