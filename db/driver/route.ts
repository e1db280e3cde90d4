import type { Row, RowList, Sql } from 'postgres'
import type { ClientOptions } from './client.ts'
import { LIMITS, requireSettings, SESSION_SETTINGS, UNTRACKED, withParameters } from './session-settings.ts'

/**
 * How statements are sent to a database, which depends on what is at the other end of its connections. A pooler that
 * shares its own connections between transactions may give one to another client as soon as a statement has been
 * answered. postgres.js sends the description of a statement without the end of its transaction (Parse, Describe,
 * Flush). Behind another statement on the same connection, PgBouncer then delivers its answer to the next client
 * (docs/decisions/database-connections.md). Therefore no statement is sent behind another one through a pooler.
 */
export interface Route {
  /** The options for the next client of a pool. */
  readonly options: ClientOptions
  /** The options for the next connection that carries one statement at a time. */
  readonly unshared: ClientOptions
  /** Whether PostgreSQL may keep the plans of statements. False as long as nothing is known. */
  readonly prepares: boolean
  /**
   * Finds out what is at the other end of a client, whose first statement this must be. The other properties may
   * change: if `options` do, the client must be replaced, and the next one verified. Throws a `StartError` if the
   * settings of the database's sessions cannot be used.
   */
  verify (sql: Sql): Promise<void>
}

// A pooler reports other process numbers than PostgreSQL does. Only one that keeps account of prepared statements gives
// them other names.
const PROBE = `select pg_backend_pid() as pid,
  (select string_agg(name, ' ') from pg_prepared_statements where statement = current_query()) as names,
  ${SESSION_SETTINGS} as settings`

/** Creates the route of a database. With the option `prepare: false`, statements are sent as through a pooler. */
export function createRoute (given: ClientOptions): Route {
  const mayPrepare = given.prepare !== false
  const limited = { ...given, connection: { ...LIMITS, ...given.connection } } as ClientOptions
  let [unshared, pooled] = withSettings(limited, UNTRACKED)
  // Once a pooler was seen, statements are sent in the way that is right in any case.
  let isDirect = mayPrepare
  let isVerified = false
  let prepares = false
  return {
    get options () { return isDirect ? unshared : pooled },
    get unshared () { return unshared },
    get prepares () { return prepares },

    async verify (sql) {
      const how = { prepare: mayPrepare, simple: false } as { prepare: boolean }
      const rows: RowList<Row[]> | undefined = await sql.unsafe(PROBE, [], how).catch((error: Error) => {
        if (!isRefusal(error) || !hasSettings(sql.options)) throw error
        return undefined
      })
      if (!rows) {
        isDirect = false
        ;[unshared, pooled] = withSettings(given, {})
        return
      }
      const { pid, names, settings } = rows[0]!
      const isPooled = pid !== rows.state.pid
      isDirect &&= !isPooled
      prepares = mayPrepare && (!isPooled || (names !== null && !names.split(' ').includes(rows.statement.name)))
      // Versions before 17 refuse it as a startup parameter, so it is one only if it has been set.
      const isLimited = !isPooled && (settings.transaction_timeout ?? '0') !== '0'
      if (isLimited && !('transaction_timeout' in unshared.connection)) {
        ;[unshared, pooled] = withSettings(unshared, { transaction_timeout: '0' })
        return
      }
      // Later, requests are served, and a role that somebody has changed must not fail all of them.
      if (!isVerified) requireSettings(settings)
      isVerified = true
    },
  }
}

// Returns the options with these startup parameters, and the same without pipelining.
function withSettings (
  options: ClientOptions, settings: Readonly<Record<string, string>>
): [ClientOptions, ClientOptions] {
  const unshared = { ...options, connection: withParameters(options.connection, settings) } as ClientOptions
  return [unshared, { ...unshared, max_pipeline: 0 } as ClientOptions]
}

const hasSettings = ({ connection }: Pick<ClientOptions, 'connection'>): boolean =>
  Object.keys(UNTRACKED).some((name) => name in connection)

// PgBouncer refuses a connection with a startup parameter that it neither keeps account of nor has been told to ignore.
const isRefusal = ({ message }: Error): boolean => /unsupported startup parameter/i.test(message)
