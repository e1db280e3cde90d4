import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Kysely, PostgresDialect } from 'kysely'
import postgres, { type Sql } from 'postgres'
import { readClientOptions } from '../../db/driver/client-options.ts'
import type { Tables } from '../../db/tables.ts'

/**
 * One connection to a database, for a transaction that takes long and copies tables. When the connection is lost, every further
 * statement fails: postgres.js would run it on a new connection, outside the transaction.
 */
export interface Session {
  readonly db: Kysely<Tables>
  /** Runs a statement and returns its rows. */
  query<Row> (text: string, parameters?: readonly (string | readonly string[])[]): Promise<Row[]>
  /** Runs a `copy … to stdout` statement. Each chunk of the stream consists of whole rows. */
  copyOut (text: string): Promise<Readable>
  /** Runs a `copy … from stdin` statement with these rows. */
  copyIn (text: string, rows: AsyncIterable<Buffer>): Promise<void>
  close (): Promise<void>
}

/** Settings with which the text of a value does not depend on the server, and without limits of time. */
const SETTINGS = {
  statement_timeout: 0,
  idle_in_transaction_session_timeout: 0,
  lock_timeout: 10_000,
  client_min_messages: 'error',
  bytea_output: 'hex',
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  extra_float_digits: 1,
  TimeZone: 'UTC',
}

/** Opens a session. It connects with its first statement. */
export function openSession (database: string, schema: string, name: string): Session {
  const options = readClientOptions(database, 0)
  let isLost = false
  const sql: Sql = postgres({
    ...options,
    max: 1,
    max_lifetime: 0,
    idle_timeout: 0,
    target_session_attrs: 'read-write',
    onclose () { isLost = true },
    connection: { ...options.connection, application_name: name },
  } as never)
  let isReady = false

  // Settings are not sent with the start of the connection, because poolers accept only some of them.
  async function prepare (): Promise<void> {
    if (isLost) throw new Error('the connection to the database was lost')
    if (isReady) return
    isReady = true
    for (const [setting, value] of Object.entries(SETTINGS)) await sql.unsafe(`set ${setting} = ${typeof value === 'number' ? value : `'${value}'`}`)
  }

  async function run (text: string, parameters: readonly unknown[] = []) {
    await prepare()
    return sql.unsafe(text, parameters as never)
  }

  const client = {
    async query (text: string, parameters: readonly unknown[]) {
      const rows = await run(text, parameters)
      return { rows: [...rows], rowCount: rows.count, command: rows.command }
    },
    release () {},
  }
  const pool = { connect: async () => client, end: async () => {} }

  return {
    db: new Kysely<Tables>({ dialect: new PostgresDialect({ pool: pool as never }) }).withSchema(schema),
    query: async <Row>(text: string, parameters?: readonly unknown[]) => [...await run(text, parameters)] as Row[],

    async copyOut (text) {
      await prepare()
      return sql.unsafe(text).readable()
    },

    async copyIn (text, rows) {
      await prepare()
      const query = sql.unsafe(text)
      const failure = rejectionOf(query)
      const input = await query.writable()
      await Promise.race([failure, pipeline(Readable.from(rows, { objectMode: false }), input)])
    },

    close: () => sql.end({ timeout: 0 }),
  }
}

// Rejects if a statement fails after postgres.js has resolved it with a stream. Its stream never ends if PostgreSQL reports an error after the
// last row, such as a full disk (postgres 3.4.9, `CopyInResponse` in src/connection.js: `final` forgets the stream).
function rejectionOf (query: object): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  promise.catch(() => {})
  const internal = query as { reject (error: unknown): void }
  const original = internal.reject
  internal.reject = (error) => {
    reject(error)
    original(error)
  }
  return promise
}

/** Returns a name as it is written in SQL. */
export const quote = (...names: string[]): string => names.map((name) => `"${name.replaceAll('"', '""')}"`).join('.')
