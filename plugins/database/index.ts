import fp from 'fastify-plugin'
import { openDatabase, type OpenDatabase } from './database.ts'
import { purgeExpired } from './purge-expired.ts'
import { addTotals } from './totals.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherDatabase: Database
  }
}

/** The open database, and what it knows about itself. */
export interface Database extends OpenDatabase {
  /** Returns the sizes of what is stored, as last known. It waits for them for a moment only. */
  readonly totals: ReturnType<typeof addTotals>
}

/** Decorates the app with the database. Without `opened`, it opens it first. */
export default fp<{ opened?: OpenDatabase }>(async function database (app, { opened }) {
  const database = opened ?? await openDatabase(app)
  const { usherOptions: options, usherTelemetry: telemetry } = app
  const core = { lifecycle: app, options, telemetry, database }
  const totals = addTotals(core)
  app.decorate('usherDatabase', { ...database, totals })
  // Every plugin has registered its channels by then.
  app.addHook('onReady', () => app.usherDatabase.start())
  purgeExpired(core)
}, { name: 'usher-database', dependencies: ['usher-options', 'usher-telemetry'] })
