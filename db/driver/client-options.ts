import postgres, { type Sql } from 'postgres'

// A node sends the next statement of a transaction at once.
const IDLE_IN_TRANSACTION_MS = 1000

/** The parsed options of a postgres.js client; `postgres()` accepts them back. */
export type ClientOptions = Sql['options']

/**
 * Returns the options of Usher's own connections to a database: those of a URL, or of a client that belongs to somebody
 * else. The client itself is never used for statements. It may be in the middle of its owner's transactions, and
 * postgres.js can return a connection to the pool inside one (porsager/postgres#1189): what Usher wrote there would be
 * rolled back after it was acknowledged. Throws a `TypeError` for a URL that is invalid.
 *
 * @param statementTimeout milliseconds until PostgreSQL cancels a statement
 */
export function readClientOptions (database: string | Sql, statementTimeout: number): ClientOptions {
  const given = typeof database === 'string' ? postgres(database, { connection: { application_name: 'usher' } }).options : database.options
  return postgres({
    ...given,
    // With it postgres.js takes the options for parsed ones, and does not read those below.
    shared: undefined,
    // Long enough for a busy machine. Whether the database is away, the heartbeat finds out much sooner.
    connect_timeout: 5,
    // After an outage the next statement connects at once; the circuit breaker holds the others back meanwhile.
    backoff: () => 0,
    onnotice: () => {},
    onclose: () => {},
    // Otherwise each connection queries them first, and one that is lost meanwhile is an unhandled rejection.
    fetch_types: false,
    types: { array },
    transform: {},
    connection: {
      statement_timeout: statementTimeout,
      // Frees the locks of a transaction whose node is gone or stalls: others wait for them.
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
      // What the URL or the client sets itself counts.
      ...given.connection,
    },
  } as never).options as never
}

// Arrays as parameters: of bool, int2, int4, text, int8, float8, timestamptz, uuid, given as text or numbers.
const array = {
  to: 1009,
  from: [1000, 1005, 1007, 1009, 1016, 1022, 1185, 2951],
  serialize: (values: readonly (string | number | null)[]): string => `{${values.map(toElement).join()}}`,
  parse: (text: string): string => text,
}

function toElement (value: string | number | null): string {
  return value === null ? 'null' : `"${String(value).replace(/["\\]/g, '\\$&')}"`
}
