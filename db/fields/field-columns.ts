import { sql } from 'kysely'
import type { UserFields } from '../../schema/users/user-fields.ts'
import type { Database } from '../tables/index.ts'

/** A column of users: its name, its type in SQL, and whether it may not be null. */
export interface ColumnRow { name: string, type: string, required: boolean }

/**
 * Returns the fields without a column. Throws an `Error` that says what to do if a column has another type than its
 * field.
 */
export async function listMissingColumns (db: Database, schema: string, fields: UserFields): Promise<UserFields> {
  if (fields.length === 0) return fields
  const columns = new Map((await listColumns(db, schema)).map((row) => [row.name, row]))
  return fields.filter(({ name, column }) => {
    const found = columns.get(name)
    if (!found) return true
    const table = `"${schema}".users`
    if (found.type !== column) {
      throw new Error(`usher: userFields.${name} needs a column of the type ${column}, but ${table} has a column "${name}" of the type ${found.type}: ` +
        `give the field another name, or change the column (alter table ${table} alter column "${name}" type ${column} using …) or drop it`)
    }
    if (found.required) {
      throw new Error(
        `usher: userFields.${name} needs a column that may be null: alter table ${table} alter column "${name}" drop not null`
      )
    }
    return false
  })
}

/** Adds a nullable column for each field. No row is rewritten. */
export async function addColumns (db: Database, schema: string, fields: UserFields): Promise<void> {
  for (const { name, column } of fields) {
    await sql`alter table ${sql.id(schema, 'users')} add column ${sql.id(name)} ${sql.raw(column)}`.execute(db)
  }
}

/**
 * Returns the columns of users. This reads the catalogue tables, because `information_schema` only shows what the
 * database user may access.
 */
export async function listColumns (db: Database, schema: string): Promise<ColumnRow[]> {
  const { rows } = await sql<ColumnRow>`
    select attname as name, format_type(atttypid, atttypmod) as type, attnotnull as required
    from pg_attribute join pg_class on pg_class.oid = attrelid join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = ${sql.lit(schema)} and relname = 'users' and attnum > 0 and not attisdropped`.execute(db)
  return rows
}
