import { openDatabase } from '../../db/driver/connection.ts'
import { migrate as migrateSchema } from '../../db/migrations/index.ts'
import { explainStart } from '../../db/driver/start-errors.ts'
import type { UsherOptions } from '../../schema/options/options.ts'
import { readOptions } from '../../schema/options/read-options.ts'

const nowhere = { warn () {}, info () {}, error () {} }

/**
 * Creates or changes Usher's tables, and the columns of `userFields` and `organizations.fields`, as the plugin does
 * when it is registered. Call it before the migrations of a host whose tables refer to `users(id)`. It opens and closes
 * connections of its own. If nodes or other calls migrate at the same time, they wait for one another. Throws the
 * errors with which the plugin does not start.
 */
export async function migrate (
  options: Pick<UsherOptions, 'databaseUrl' | 'sql' | 'schema' | 'userFields' | 'organizations'>
): Promise<void> {
  const { databaseUrl, sql, schema: name, userFields: ofUsers, organizations: given, ...rest } = options
  const unknown = Object.keys(rest)[0]
  if (unknown !== undefined) {
    throw new Error(`usher: migrate has no option ${unknown}, only databaseUrl, sql, schema, userFields and organizations`)
  }
  // Its roles may have actions of the policy, which it does not know.
  const organizations = typeof given === 'object' ? { fields: given.fields } : undefined
  const { database, schema, ...read } =
    readOptions({ databaseUrl, sql, userFields: ofUsers, organizations, ...name !== undefined && { schema: name } })
  const { db, close } = openDatabase({ database, schema, poolSize: 2, log: nowhere })
  try {
    await migrateSchema(db, schema, { fields: { users: read.userFields, organizations: read.organizations?.fields } })
  } catch (error) {
    throw explainStart(error as Error, schema)
  } finally {
    await close()
  }
}
