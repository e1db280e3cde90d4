import { openDatabase } from '../../db/driver/connection.ts'
import { migrate as migrateSchema } from '../../db/migrations/index.ts'
import { explainStart } from '../../db/driver/start-errors.ts'
import type { UsherOptions } from '../../schema/options/options.ts'
import { readOptions } from '../../schema/options/read-options.ts'

const nowhere = { warn () {}, info () {}, error () {} }

/**
 * Creates or changes Usher's tables, and the columns of `userFields`, as the plugin does when it is registered. Call it
 * before the migrations of a host whose tables refer to `users(id)`. It opens and closes connections of its own. If
 * nodes or other calls migrate at the same time, they wait for one another. Throws the errors with which the plugin
 * does not start.
 */
export async function migrate (
  given: Pick<UsherOptions, 'databaseUrl' | 'sql' | 'schema' | 'userFields'>
): Promise<void> {
  const { databaseUrl, sql, schema: name, userFields: added, ...rest } = given
  const unknown = Object.keys(rest)[0]
  if (unknown !== undefined) {
    throw new Error(`usher: migrate has no option ${unknown}, only databaseUrl, sql, schema and userFields`)
  }
  const { database, schema, userFields } =
    readOptions({ databaseUrl, sql, userFields: added, ...name !== undefined && { schema: name } })
  const { db, close } = openDatabase({ database, schema, poolSize: 2, log: nowhere })
  try {
    await migrateSchema(db, schema, { fields: userFields })
  } catch (error) {
    throw explainStart(error as Error, schema)
  } finally {
    await close()
  }
}
