import Fastify, { type FastifyInstance } from 'fastify'
import usher from '../../app.ts'
import type { Database } from '../../db/tables/index.ts'
import type { Caller } from '../../plugins/access/caller.ts'
import { explain, requireDatabase } from '../data.ts'
import { readEnvironment } from '../settings/environment.ts'
import { openMailTemplates } from '../mail/templates.ts'
import { openMailer } from '../mail/mailer.ts'
import { serviceOptions } from '../settings/service-options.ts'
import type { Settings } from '../settings/settings.ts'
import type { Shell } from '../terminal/shell.ts'
import { requireAnswer } from '../wait-for-database.ts'
import { terminalContext } from './audit.ts'
import { openCommandData } from './command-data.ts'

/** What a command that changes accounts gets. */
export interface ServiceContext {
  /** The scope of the plugin, with the functions that routes use. */
  readonly app: FastifyInstance
  readonly db: Database
  /** The operator, who has every permission. */
  readonly caller: Caller
  readonly settings: Settings
  readonly sendsMails: boolean
}

/**
 * Runs the work of a command with the functions that routes use, so that changes have the same effects: account log,
 * ended sessions, events and mails. The service is started without its routes. Mails are sent before it returns, or by
 * a node if that takes long. Throws an `Error` with a sentence.
 */
export async function withService<Result> (
  shell: Shell, work: (context: ServiceContext) => Promise<Result>
): Promise<Result> {
  const settings = await readEnvironment(shell)
  requireDatabase(settings)
  await requireAnswer(settings)
  const data = await openCommandData(settings, shell)
  const { mailer, close } = await openMailer(settings, shell.messages)
  // A migration may take long.
  const app = Fastify({ logger: false, pluginTimeout: 0 })
  // The plugin encapsulates everything in a scope. Its host does not see it, but Fastify tells about every scope.
  const scopes: FastifyInstance[] = []
  app.addHook('onRegister', (scope) => { scopes.push(scope) })
  try {
    await app.register(usher, {
      ...serviceOptions(settings),
      databaseUrl: data.url,
      poolSize: 2,
      mailer,
      mailTemplates: openMailTemplates(settings),
      secret: data.secret,
      // A command may be what gives these users another role.
      onRoleInUse () {},
      without: ['posts', 'uploads', 'graphql', 'docs', 'pages'],
    })
    await app.ready()
    const scope = scopes.find((scope) => scope.hasDecorator('usherAccounts'))!
    // No request waits for the command, which should not fail on a busy machine.
    scope.usherDatabase.setServing(false)
    const caller = scope.usherAccess.createHostCaller({ via: 'command', ...terminalContext })
    return await work({ app: scope, db: scope.usherDatabase.db, caller, settings, sendsMails: mailer !== undefined })
  } catch (error) {
    throw new Error(explain(error as Error, settings), { cause: error })
  } finally {
    await app.close()
    close()
    await data.stop()
  }
}
