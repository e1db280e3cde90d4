import { listColumns } from '../../db/fields/field-columns.ts'
import type { Database } from '../../db/tables/index.ts'
import type { Options } from '../../schema/options/options.ts'
import { userFieldsOfColumns } from '../../schema/users/read-user-fields.ts'
import type { UserFields } from '../../schema/users/user-fields.ts'

/**
 * Returns the fields of users: those of the configuration file, which say what values are allowed, and other columns
 * that a host has added.
 */
export async function listFields (
  db: Database, { schema, userFields }: Pick<Options, 'schema' | 'userFields'>
): Promise<UserFields> {
  const names = new Set(userFields.map(({ name }) => name))
  return [...userFields, ...userFieldsOfColumns(await listColumns(db, schema, 'users')).filter(({ name }) => !names.has(name))]
}
