import { Kysely } from 'kysely'
import { createDialect } from './dialect.ts'
import { createGate, type Gate } from './gate.ts'
import { createNotifications, type Log, type Notifications } from './notifications.ts'
import { openPool, type PoolOptions } from './pool.ts'
import type { Tables } from './tables.ts'

const STATEMENT_TIMEOUT_MS = 10_000

export interface ConnectionOptions extends Omit<PoolOptions, 'statementTimeout'> {
  statementTimeout?: number
  /** Where notifications come from, if not from the same address. */
  notificationsUrl?: string | undefined
  /** The Postgres schema that holds Usher's tables. */
  schema: string
  log: Log
}

export interface Connection {
  readonly db: Kysely<Tables>
  readonly gate: Gate
  readonly notifications: Notifications
  close (): Promise<void>
}

/** Opens the database; nothing is sent before the first statement. Throws a `TypeError` for a URL that is none. */
export function connect ({ database, notificationsUrl, schema, poolSize, statementTimeout = STATEMENT_TIMEOUT_MS, log }: ConnectionOptions): Connection {
  const pool = openPool({ database, poolSize, statementTimeout })
  const gate = createGate()
  // Its options only: the one connection is opened by `db/listener.ts`.
  const source = notificationsUrl === undefined ? pool : openPool({ database: notificationsUrl, poolSize: 1, statementTimeout })
  const notifications = createNotifications({ pool, source, gate, log, statementTimeout })
  const db = new Kysely<Tables>({ dialect: createDialect(pool, gate) }).withSchema(schema)
  return {
    db,
    gate,
    notifications,

    async close () {
      await notifications.close()
      await db.destroy()
      await pool.close()
      gate.set(false)
    },
  }
}
