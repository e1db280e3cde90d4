import { listColumns, type FieldTable } from '../../db/fields/field-columns.ts'
import type { Database } from '../../db/tables/index.ts'
import type { Field } from '../../schema/fields/fields.ts'
import type { Options } from '../../schema/options/options.ts'
import { organizationFieldsOfColumns, type OrganizationFields } from '../../schema/organizations/organization-fields.ts'
import { userFieldsOfColumns } from '../../schema/users/read-user-fields.ts'
import type { UserFields } from '../../schema/users/user-fields.ts'

/**
 * Returns the fields of users: those of the configuration file, which say what values are allowed, and other columns
 * that a host has added.
 */
export function listUserFields (
  db: Database, { schema, userFields }: Pick<Options, 'schema' | 'userFields'>
): Promise<UserFields> {
  return withColumns(db, { schema, table: 'users', known: userFields, read: userFieldsOfColumns })
}

/** Returns the fields of organisations: those of the settings, and other columns that a host has added. */
export function listOrganizationFields (
  db: Database, { schema, fields }: Pick<Options, 'schema'> & { fields: OrganizationFields }
): Promise<OrganizationFields> {
  return withColumns(db, { schema, table: 'organizations', known: fields, read: organizationFieldsOfColumns })
}

interface Table<One extends Field> {
  readonly schema: string
  readonly table: FieldTable
  readonly known: readonly One[]
  read (columns: Awaited<ReturnType<typeof listColumns>>): readonly One[]
}

async function withColumns<One extends Field> (
  db: Database, { schema, table, known, read }: Table<One>
): Promise<readonly One[]> {
  const names = new Set(known.map(({ name }) => name))
  return [...known, ...read(await listColumns(db, schema, table)).filter(({ name }) => !names.has(name))]
}
