import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { openDatabase, type OpenDatabase } from './database.ts'
import { addTotals } from './totals.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherDatabase: OpenDatabase
  }
}

/** Decorates the app with the database. Without `opened`, it opens it first. */
export default fp<{ opened?: OpenDatabase }>(async function database (app, { opened }) {
  app.decorate('usherDatabase', opened ?? await openDatabase(app))
  addTotals(coreOf(app))
  // Every plugin has registered its channels by then.
  app.addHook('onReady', () => app.usherDatabase.start())
}, { name: 'usher-database', dependencies: ['usher-options', 'usher-telemetry'] })
