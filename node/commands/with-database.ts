import { openDatabase } from '../../db/driver/connection.ts'
import { migrate } from '../../db/migrations.ts'
import type { Database } from '../../db/tables.ts'
import { readOptions, type Options } from '../../schema/options.ts'
import type { Settings } from '../settings.ts'
import { explain, openData } from '../data.ts'
import { readEnvironment } from '../environment.ts'

/** What a command that works on the database gets. */
export interface CommandContext {
  readonly db: Database
  /** Those of the plugin that concern the database and what is in it. */
  readonly options: Options
  readonly settings: Settings
  /** Where the data are, in words. */
  readonly location: string
}

/**
 * Runs a command on the node's database, brought up to date; nodes may run meanwhile, and hear of what changes. An
 * embedded one is started where none runs. Throws an `Error` of one sentence.
 */
export async function withDatabase (work: (work: CommandContext) => Promise<void>): Promise<void> {
  const settings = readEnvironment()
  const data = await openData(settings, () => {})
  try {
    const options = readOptions({ databaseUrl: data.url, secret: data.secret })
    const { db, close } = openDatabase({ database: data.url, schema: options.schema, poolSize: 2, log: { warn () {}, info () {}, error () {} } })
    try {
      await migrate(db, options.schema)
      await work({ db, options, settings, location: data.location })
    } finally {
      await close()
    }
  } catch (error) {
    throw new Error(explain(error as Error, settings), { cause: error })
  } finally {
    await data.stop()
  }
}
