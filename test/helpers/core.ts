import Fastify from 'fastify'
import type { Test } from 'tap'
import { coreOf } from '../../plugins/core.ts'
import database from '../../plugins/database/index.ts'
import optionsPlugin from '../../plugins/options.ts'
import telemetry from '../../plugins/telemetry/index.ts'
import type { UsherOptions } from '../../schema/options/options.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { testDatabaseUrl, uniqueSchema } from './database.ts'
import { slow } from './deadlines.ts'

/**
 * Opens what the parts of a capability are made from, on a bare Fastify, for tests of one part. Call `app.ready` when
 * the parts are made.
 * @param given options; by default the database is that of the tests, with a schema of its own, and the deadlines are
 * `slow`
 */
export async function openCore (t: Test, given: Partial<UsherOptions> = {}) {
  const lines: string[] = []
  const app =
    Fastify({ pluginTimeout: 0, logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  const databaseUrl = await testDatabaseUrl()
  const options = { databaseUrl, schema: uniqueSchema(t.name), deadlines: slow, ...given }
  await app.register(optionsPlugin, { options: readOptions(options) })
  await app.register(telemetry)
  await app.register(database)
  return { app, core: coreOf(app), lines }
}
