import { Kysely } from 'kysely'
import postgres, { type Sql } from 'postgres'
import { createDialect } from './dialect.ts'
import { createGate, type Gate } from './gate.ts'
import { createNotifications, type Notifications } from './notifications.ts'
import type { Tables } from './tables.ts'

const STATEMENT_TIMEOUT_MS = 10_000

export interface ConnectionOptions {
  /** `postgres://…`; or a postgres.js client that its owner closes. */
  database: string | Sql
  /** The Postgres schema that holds Usher's tables. */
  schema: string
  /** Connections of the pool, where Usher opens it. */
  poolSize: number
}

export interface Connection {
  readonly db: Kysely<Tables>
  readonly gate: Gate
  readonly notifications: Notifications
  close (): Promise<void>
}

/** Opens the database; nothing is sent before the first statement. Throws a `TypeError` for a URL that is none. */
export function connect ({ database, schema, poolSize }: ConnectionOptions): Connection {
  const sql = typeof database === 'string' ? openPool(database, poolSize) : database
  const gate = createGate()
  const notifications = createNotifications(sql, gate)
  return {
    db: new Kysely<Tables>({ dialect: createDialect(sql, gate) }).withSchema(schema),
    gate,
    notifications,

    async close () {
      await notifications.close()
      if (sql !== database) await sql.end({ timeout: 1 })
    },
  }
}

function openPool (url: string, max: number): Sql {
  return postgres(url, {
    max,
    connect_timeout: 1,
    // After an outage the next statement connects at once; the gate keeps the crowd away meanwhile.
    backoff: () => 0,
    onnotice: () => {},
    connection: { application_name: 'usher', statement_timeout: STATEMENT_TIMEOUT_MS },
  })
}
