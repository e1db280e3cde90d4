import { Kysely, sql } from 'kysely'
import type { Sql } from 'postgres'
import { DEADLINES, type Deadlines } from '../../schema/options/deadlines.ts'
import { createBackends } from './backends.ts'
import type { ClientOptions } from './client.ts'
import { readClientOptions } from './client-options.ts'
import { createClock, type Clock } from './clock.ts'
import { createDialect } from './dialect.ts'
import { setClock } from './ids.ts'
import { createCircuitBreaker, type CircuitBreaker } from './circuit-breaker.ts'
import { createNotifications, type Notifications } from './notifications.ts'
import { failStatements, reportOutages, type Log } from './outages.ts'
import { createPool } from './pool.ts'
import { presenceOf } from './presence.ts'
import { createRoute } from './route.ts'
import { setSchema } from './postgres.ts'
import { withParameters } from './session-settings.ts'
import { setSessions } from './session.ts'
import type { Tables } from '../tables/index.ts'
import { TransactionConnection } from './transaction-connection.ts'
import { createTransactionPool } from './transaction-pool.ts'
import { observeStatements, type OnStatement } from '../telemetry/observe-statements.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { measureDatabase, measureStatements } from './measure-database.ts'

export interface ConnectionOptions {
  /** A URL (`postgres://…`), or a postgres.js client of the host, whose settings Usher uses for its own connections. */
  database: string | Sql
  /**
   * The number of connections for statements outside transactions, at least 2. Transactions open up to half as many
   * more on demand.
   */
  poolSize: number
  deadlines?: Deadlines
  /** The URL to receive notifications from, if statements go through a pooler that does not deliver them. */
  notificationsUrl?: string | undefined
  /** The PostgreSQL schema that contains Usher's tables. */
  schema: string
  /** Measures statements and connections, and gives statements spans. */
  telemetry?: Telemetry
  /** Without it, nothing is measured. */
  onStatement?: OnStatement | undefined
  log: Log
}

export interface Connection {
  readonly db: Kysely<Tables>
  readonly breaker: CircuitBreaker
  readonly clock: Clock
  readonly notifications: Notifications
  /**
   * Detects outages for statements if notifications come from another URL. The caller starts it along with
   * `notifications`.
   */
  readonly heartbeat: Pick<Notifications, 'start'> | undefined
  /**
   * Opens the first connections, those of `notifications` included, at the same time. Resolves when statements can be
   * sent. Rejects with the failure of a connection.
   */
  connect (): Promise<void>
  /** Replaces the connections of statements, for example because the server accepts no writes any more. */
  reconnect (): void
  /** Measures the clock of the database before there is a heartbeat. No row gets an id before. */
  measureClock (): Promise<void>
  /** Sets whether requests are served. If not, as at first, the database has more time to answer. */
  setServing (isServing: boolean): void
  /** Closes the connections. Statements that follow reject with `DatabaseUnavailable`. */
  close (): Promise<void>
}

/**
 * Creates the pools and everything around them. It connects on demand only. Throws a `TypeError` for an invalid URL.
 */
export function openDatabase (
  {
    database, notificationsUrl, schema, poolSize, deadlines = DEADLINES, telemetry, onStatement, log,
  }: ConnectionOptions
): Connection {
  const options = readClientOptions(database, deadlines.statement, deadlines)
  const readers = Math.floor(poolSize / 2)
  const route = createRoute(options)
  const reads = createPool(route, readers)
  const writes = createPool(route, poolSize - readers)
  const transactions = createTransactionPool(() => route.unshared, {
    size: Math.ceil(poolSize / 2), timeoutMs: deadlines.transaction,
  })
  const breaker = createCircuitBreaker({ onAnswer: telemetry && measureStatements(telemetry) })
  if (telemetry) measureDatabase(telemetry, { breaker, reads, writes, transactions })
  const backends = createBackends()
  const closing = new AbortController()
  const probe = () => Promise.all([reads, writes].map(async (pool) => (await pool.ready()).unsafe('select 1')))
  const outages = failStatements({
    breaker, backends, renew, probe, statementTimeout: deadlines.statement, closing: closing.signal, log,
  })
  const clock = createClock(log)
  const isSeparate = notificationsUrl !== undefined
  const separate = isSeparate ? readClientOptions(notificationsUrl, deadlines.statement, deadlines) : options
  const ofBoth = { pool: writes, presence: presenceOf(schema), deadlines }
  const ofStatements = { ...ofBoth, source: () => route.unshared, isSeparate: false, outages, clock }
  const ofNotifications = {
    ...ofBoth, source: () => separate, isSeparate: true, outages: reportOutages(log), clock: undefined,
  }
  const notifications = createNotifications(isSeparate ? ofNotifications : ofStatements)
  // With two URLs, statements may be answered while notifications do not arrive, and the other way round.
  const heartbeat = isSeparate ? createNotifications(ofStatements) : undefined

  function renew (seconds?: number): void {
    backends.clear()
    reads.renew(seconds)
    writes.renew(seconds)
    if (seconds === 0) transactions.destroy()
  }

  const observe = observeStatements({ onStatement, tracing: telemetry?.tracing })
  const pools = { reads, writes, transactions, route, backends, observe }
  const db = new Kysely<Tables>({ dialect: createDialect(pools, breaker, log) }).withSchema(schema)
  setSchema(db, schema)
  setClock(db, clock)
  setSessions(db, () => {
    const { unshared } = route
    const connection = withParameters(unshared.connection, { statement_timeout: '0' })
    return new TransactionConnection({ ...unshared, connection } as ClientOptions)
  })
  return {
    db,
    breaker,
    clock,
    notifications,
    heartbeat,

    async connect () {
      for (const listening of [notifications, heartbeat]) listening?.connect()
      await Promise.all([reads.connect(), writes.connect()])
    },

    reconnect: () => renew(0),

    async measureClock () {
      const sent = performance.now()
      const { rows: [row] } = await sql<{ time: number }>`
        select extract(epoch from clock_timestamp())::float8 * 1000 as time`.execute(db)
      clock.adjust(row!.time, sent, performance.now())
    },

    setServing (isServing) {
      notifications.setServing(isServing)
      heartbeat?.setServing(isServing)
    },

    async close () {
      closing.abort()
      await Promise.all([notifications.close(), heartbeat?.close()])
      // A request whose client was cut off may still run, and its next statement fails as in an outage. Kysely's
      // `destroy` would make it an unexpected error, and has nothing to close.
      breaker.stop()
      transactions.destroy()
      await Promise.all([reads.close(), writes.close()])
      breaker.setClosed(false)
    },
  }
}
