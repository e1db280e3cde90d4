import { Kysely, PostgresDialect } from 'kysely'
import type { Readable, Writable } from 'node:stream'
import { readClientOptions } from '../../db/driver/client-options.ts'
import { send } from '../../db/driver/send.ts'
import { openClient } from '../../db/driver/sockets.ts'
import type { Tables } from '../../db/tables/index.ts'

/**
 * One connection to a database, for a transaction that takes long and copies tables. When the connection is lost, every
 * further statement fails: postgres.js would run it on a new connection, outside the transaction.
 */
export interface Session {
  readonly db: Kysely<Tables>
  /** Runs a statement and returns its rows. */
  query<Row> (text: string, parameters?: readonly (string | readonly string[])[]): Promise<Row[]>
  /** Runs a `copy … to stdout` statement. Each chunk of the stream consists of whole rows. */
  copyOut (text: string): Promise<Readable>
  /** Runs a `copy … from stdin` statement. */
  copyIn (text: string): Promise<Writable>
  /**
   * Applies settings until the end of the transaction: the text of a value then does not depend on the server, and no
   * time is limited.
   */
  applySettings (): Promise<void>
  close (): Promise<void>
}

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
  const { sql, end } = openClient(options, {
    max: 1,
    max_lifetime: 0,
    idle_timeout: 0,
    onclose () { isLost = true },
    // Poolers ignore these limits, or have their own.
    connection: {
      ...options.connection, application_name: name, statement_timeout: '0', idle_in_transaction_session_timeout: '0',
    },
  }, 1)

  function requireConnection (): void {
    if (isLost) throw new Error('the connection to the database was lost')
  }

  async function run (text: string, parameters: readonly unknown[] = []) {
    requireConnection()
    return send(sql, text, parameters, false)
  }

  const client = {
    async query (text: string, parameters: readonly unknown[]) {
      const rows = await run(text, parameters).catch(rethrow)
      return { rows: [...rows], rowCount: rows.count, command: rows.command }
    },
    release () {},
  }
  const pool = { connect: async () => client, end: async () => {} }

  return {
    db: new Kysely<Tables>({ dialect: new PostgresDialect({ pool: pool as never }) }).withSchema(schema),
    query: async <Row>(text: string, parameters?: readonly unknown[]) => [...await run(text, parameters)] as Row[],

    async copyOut (text) {
      requireConnection()
      return sql.unsafe(text).readable()
    },

    async copyIn (text) {
      requireConnection()
      const copy = sql.unsafe(text)
      // When the server reports an error after the last chunk, postgres.js rejects the statement, which was already
      // resolved with the stream, and the stream would never finish (porsager/postgres#1173).
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

    // They end with the transaction, because a pooler would give the connection to another client with them.
    async applySettings () {
      await run(Object.entries(SETTINGS).map(([name, value]) => `set local ${name} = '${value}'`).join('; '))
    },

    close: () => end(),
  }
}

// Kysely adds to the stack of an error, which postgres.js makes read-only.
function rethrow (error: Error): never {
  throw Object.defineProperty(error, 'stack', { value: error.stack, writable: true, configurable: true })
}

/** Returns a name as it is written in SQL. */
export const quote = (...names: string[]): string => names.map((name) => `"${name.replaceAll('"', '""')}"`).join('.')
