import type { Row, RowList, Sql } from 'postgres'
import type { ClientOptions } from './client-options.ts'

/**
 * How statements are sent to a database, which depends on what is at the other end of its connections. A pooler that shares its own
 * connections between transactions may give one to another client as soon as a statement has been answered. postgres.js sends the
 * description of a statement without the end of its transaction (Parse, Describe, Flush). Behind another statement on the same
 * connection, PgBouncer then delivers its answer to the next client (docs/decisions/database-connections.md). Therefore no statement
 * is sent behind another one through a pooler.
 */
export interface Route {
  /** The options for the next client of a pool. */
  readonly options: ClientOptions
  /** Whether PostgreSQL may keep the plans of statements. False as long as nothing is known. */
  readonly prepares: boolean
  /** Whether `verify` has nothing to find out, because the options already say that statements go through a pooler. */
  readonly isKnown: boolean
  /** Finds out what is at the other end of a client, whose first statement this must be. The other properties may change. */
  verify (sql: Sql): Promise<void>
}

// A pooler reports other process numbers than PostgreSQL does. Only one that keeps account of prepared statements gives them other names.
const PROBE = `select pg_backend_pid() as pid,
  (select string_agg(name, ' ') from pg_prepared_statements where statement = current_query()) as names`

/** Creates the route of a database. With the option `prepare: false`, statements are sent as through a pooler. */
export function createRoute (options: ClientOptions): Route {
  const isKnown = options.prepare === false
  const unpipelined = { ...options, max_pipeline: 0 }
  // Once a pooler was seen, statements are sent in the way that is right in any case.
  let isDirect = !isKnown
  let prepares = false
  return {
    isKnown,
    get options () { return isDirect ? options : unpipelined },
    get prepares () { return prepares },

    async verify (sql) {
      const rows: RowList<Row[]> = await sql.unsafe(PROBE, [], { prepare: true, simple: false } as { prepare: boolean })
      const { pid, names } = rows[0]!
      const isPooled = pid !== rows.state.pid
      isDirect &&= !isPooled
      prepares = !isPooled || (names !== null && !names.split(' ').includes(rows.statement.name))
    },
  }
}
