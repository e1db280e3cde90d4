import { openDatabase } from '../../db/driver/connection.ts'
import { migrate } from '../../db/migrations/index.ts'
import type { ReportStep } from '../../db/migrations/steps.ts'
import { loadConsumed } from '../../db/outbox/consumed.ts'
import type { Database } from '../../db/tables/index.ts'
import type { Options } from '../../schema/options/options.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { serviceOptions } from '../settings/service-options.ts'
import type { Settings } from '../settings/settings.ts'
import { explain, requireDatabase } from '../data.ts'
import { readEnvironment } from '../settings/environment.ts'
import type { Shell } from '../terminal/shell.ts'
import { requireAnswer, waitForDatabase } from '../wait-for-database.ts'
import { openCommandData } from './command-data.ts'

/** What a command that works on the database gets. */
export interface CommandContext {
  readonly db: Database
  /** The options of the plugin that come from the settings. */
  readonly options: Options
  readonly settings: Settings
  readonly databaseUrl: string
  /** A description of where the data are, for people. */
  readonly location: string
}

/**
 * Runs the work of a command on the node's database, which is brought up to date first. An embedded PostgreSQL is
 * started if none runs, and must exist. Nodes may run meanwhile and are notified of changes. Throws an `Error` with a
 * sentence.
 * @param options.creates whether an embedded database is created if there is none
 * @param options.schema the PostgreSQL schema, by default that of a node
 * @param options.waits whether to wait for a database that cannot be reached, as a node does
 * @param options.report receives what the migrations do
 */
export async function withDatabase<Result> (
  shell: Shell,
  work: (context: CommandContext) => Promise<Result>,
  { creates = false, waits = false, schema, report }: {
    creates?: boolean, waits?: boolean, schema?: string, report?: ReportStep
  } = {}
): Promise<Result> {
  const settings = await readEnvironment(shell)
  if (!creates) requireDatabase(settings)
  if (waits) {
    await waitForDatabase(settings, shell.messages)
      .catch((error: Error) => { throw new Error(explain(error, settings), { cause: error }) })
  } else {
    await requireAnswer(settings)
  }
  const data = await openCommandData(settings, shell)
  try {
    const options = readOptions({
      ...serviceOptions(settings), databaseUrl: data.url, secret: data.secret, ...schema !== undefined && { schema },
    })
    const log = { warn () {}, info () {}, error () {} }
    const { deadlines } = options
    const { db, measureClock, close } = openDatabase({
      database: data.url, schema: options.schema, poolSize: 2, deadlines, log,
    })
    try {
      const { userFields, organizations } = options
      const fields = { users: userFields, organizations: organizations?.fields }
      await migrate(db, options.schema, { fields, ...report && { report } })
      await loadConsumed(db)
      await measureClock()
      return await work({ db, options, settings, databaseUrl: data.url, location: data.location })
    } finally {
      await close()
    }
  } catch (error) {
    throw new Error(explain(error as Error, settings), { cause: error })
  } finally {
    await data.stop()
  }
}
