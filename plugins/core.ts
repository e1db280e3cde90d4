import type { FastifyInstance } from 'fastify'
import type { Telemetry } from '../db/telemetry/telemetry.ts'
import type { Options } from '../schema/options/options.ts'
import type { OpenDatabase } from './database/database.ts'

/** Where a part of a capability adds what it does when the app is ready or closes, and writes its log. */
export type Lifecycle = Pick<FastifyInstance, 'addHook' | 'log'>

/** What nearly every part of a capability is made from. Whatever else it needs is a further argument. */
export interface Core {
  readonly lifecycle: Lifecycle
  readonly options: Options
  readonly telemetry: Telemetry
  readonly database: OpenDatabase
}

/** Returns what the parts of a capability are made from, in its plugin. */
export function coreOf (app: FastifyInstance): Core {
  const { usherOptions: options, usherTelemetry: telemetry, usherDatabase: database } = app
  return { lifecycle: app, options, telemetry, database }
}
