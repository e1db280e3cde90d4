import { Kysely, PostgresDialect } from 'kysely'
import postgres, { type Sql } from 'postgres'
import type { Readable, Writable } from 'node:stream'
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
  /** Runs a `copy … from stdin` statement. */
  copyIn (text: string): Promise<Writable>
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

    async copyIn (text) {
      await prepare()
      const copy = sql.unsafe(text)
      // When the server reports an error after the last chunk, postgres.js rejects the statement, which was already resolved with the
      // stream, and the stream would never finish (porsager/postgres#1173).
      const { reject } = copy as unknown as { reject: (error: Error) => void }
      const stream = copy.writable()
      Object.assign(copy, {
        reject (error: Error) {
          reject(error)
          void stream.then((input) => input.destroy(error), () => {})
        },
      })
      return stream
    },

    close: () => sql.end({ timeout: 0 }),
  }
}

/** Returns a name as it is written in SQL. */
export const quote = (...names: string[]): string => names.map((name) => `"${name.replaceAll('"', '""')}"`).join('.')
