import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { openDatabase } from '../db/driver/connection.ts'
import { migrate } from '../db/migrations.ts'
import type { MigrationStep } from '../db/migration-steps.ts'
import { explainStart } from '../db/start-errors.ts'
import { loadConsumed } from '../db/outbox/consumed.ts'
import { newId } from '../db/driver/ids.ts'
import { createWriteInTime } from '../db/driver/write-in-time.ts'
import { DatabaseUnavailable } from '../schema/errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherDatabase: Awaited<ReturnType<typeof createDatabase>>
  }
}

const messages = { started: 'has started', building: 'builds an index', ended: 'has ended' }

async function createDatabase (app: FastifyInstance) {
  const { database, notificationsUrl, schema, poolSize, userFields, deadlines } = app.usherOptions
  const { usherTelemetry: telemetry } = app
  const connection = openDatabase({ database, notificationsUrl, schema, poolSize, deadlines, telemetry, log: app.log })
  const { db, breaker, clock, notifications, heartbeat, measureClock, setServing, close } = connection
  app.addHook('onClose', close)
  const newer = await migrate(db, schema, { fields: userFields, report }).catch(giveUp)
  if (newer.length > 0) app.log.warn({ schema, migrations: newer }, 'a newer version of Usher has migrated the database')
  await Promise.all([loadConsumed(db), measureClock()]).catch(giveUp)

  function report ({ state, ...step }: MigrationStep): void {
    if (state === 'waiting') app.log.warn({ schema, ...step }, step.migration ? 'a migration waits for a lock and is tried again' : 'another node migrates the database')
    else app.log.info({ schema, ...step }, `a migration ${messages[state]}`)
  }

  // If the app does not start, an open connection would keep the process alive.
  async function giveUp (error: Error): Promise<never> {
    await close()
    throw explainStart(error, schema)
  }

  /** Starts listening to notifications. Throws if the database or `notificationsUrl` cannot be used. */
  async function start (): Promise<void> {
    await heartbeat?.start().catch(giveUp)
    await notifications.start().catch(async (error: Error) => {
      const isExplained = error instanceof DatabaseUnavailable || error.message.startsWith('usher: ')
      if (notificationsUrl === undefined || isExplained) return giveUp(error)
      await close()
      throw new Error(`usher: notificationsUrl cannot be used to receive notifications: ${error.message}`, { cause: error })
    })
  }

  return {
    db,
    breaker,
    clock,
    notifications,
    start,
    setServing,
    newId: () => newId(db),
    writeInTime: createWriteInTime(clock, deadlines),
  }
}

/** Connects to the database, migrates it, and closes the connections when the app closes. */
export default fp(async function database (app) {
  app.decorate('usherDatabase', await createDatabase(app))
  // Every plugin has registered its channels by then.
  app.addHook('onReady', () => app.usherDatabase.start())
}, { name: 'usher-database', dependencies: ['usher-telemetry'] })
