import postgres, { type Sql } from 'postgres'
import { DEADLINES, type Deadlines } from '../../schema/options/deadlines.ts'
import { createClient, type ClientOptions } from './client.ts'
import { TRACKED, withParameters } from './session-settings.ts'
import { parseTimestamp } from './timestamps.ts'

/**
 * Returns the options for Usher's own connections to a database, taken from a URL or from a postgres.js client of the
 * host. Usher never runs statements on the host's client, because its connections may be inside transactions of the
 * host: postgres.js can return a connection to its pool inside an open transaction (porsager/postgres#1189). What Usher
 * wrote there would be rolled back after it was acknowledged. Throws a `TypeError` for an invalid URL.
 *
 * @param statementTimeout milliseconds until PostgreSQL cancels a statement; 0 for never
 */
export function readClientOptions (
  database: string | Sql, statementTimeout: number,
  { idleInTransaction, databaseConnectMax, databasePrimary: primaryMs }: Deadlines = DEADLINES
): ClientOptions {
  const base = typeof database === 'string'
    ? createClient(database, { connection: { application_name: 'usher' } }).options
    : database.options
  const { options } = postgres({
    ...base,
    // If it is set, postgres.js considers the options as parsed already and ignores those below.
    shared: undefined,
    // In seconds, and long enough for a busy machine. The heartbeat detects an unavailable database much sooner.
    connect_timeout: databaseConnectMax / 1000,
    // After an outage, the next statement connects at once. During the outage, the circuit breaker rejects statements.
    backoff: () => 0,
    onnotice: () => {},
    onclose: () => {},
    // Otherwise every connection first queries the array types. If it is lost during that query, postgres.js causes an
    // unhandled rejection (porsager/postgres#1192).
    fetch_types: false,
    types,
    transform: {},
    connection: withParameters({
      // postgres.js leaves out the number 0.
      statement_timeout: String(statementTimeout),
      // Frees the locks of a transaction whose node has crashed or stalls, since other statements wait for them. A node
      // sends the statements of a transaction without pauses, but may not get to run for more than a second on a busy
      // machine.
      idle_in_transaction_session_timeout: String(idleInTransaction),
      // The limits of the URL or of the host's client take precedence.
      ...base.connection,
    }, TRACKED),
  } as never)
  return { ...options as never as Omit<ClientOptions, 'primaryMs'>, primaryMs }
}

// A serializer that throws would mix up the answers of other statements (`db/driver/send.ts`), so each of them returns
// a text for every value. PostgreSQL rejects what is none of its type.
const types = {
  // The elements are text or numbers: bool, int2, int4, text, int8, float8, timestamptz, uuid and jsonb. Without
  // `fetch_types`, postgres.js does not know the array types itself.
  array: {
    to: 1009,
    from: [1000, 1005, 1007, 1009, 1016, 1022, 1185, 2951, 3807],
    serialize: (values: unknown): string =>
      Array.isArray(values) ? orElse(() => `{${values.map(toElement).join()}}`, NO_ARRAY) : String(values),
    parse: (text: string): string => text,
  },
  date: {
    to: 1184,
    from: [1082, 1114, 1184],
    serialize: (value: unknown): string => isDate(value) ? value.toISOString() : String(value),
    parse: parseTimestamp,
  },
  json: {
    to: 114,
    from: [114, 3802],
    serialize: (value: unknown): string => orElse(() => JSON.stringify(value), NO_JSON),
    parse: (text: string): unknown => JSON.parse(text),
  },
  bytea: {
    to: 17,
    from: [17],
    serialize: (value: unknown): string =>
      value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : NO_BYTES,
    parse: (text: string): Buffer => Buffer.from(text.slice(2), 'hex'),
  },
}

// Texts that PostgreSQL rejects.
const NO_ARRAY = ''
const NO_JSON = ''
const NO_BYTES = '\\'

const isDate = (value: unknown): value is Date => value instanceof Date && !Number.isNaN(value.getTime())

function orElse (serialize: () => string | undefined, otherwise: string): string {
  try {
    return serialize() ?? otherwise
  } catch {
    return otherwise
  }
}

function toElement (value: unknown): string {
  return value === null ? 'null' : `"${String(value).replace(/["\\]/g, '\\$&')}"`
}
