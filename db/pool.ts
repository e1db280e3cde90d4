import postgres, { type Sql } from 'postgres'
import { createSockets, type Failure } from './sockets.ts'

const FAREWELL_SECONDS = 1

/** The connections that statements go out on. */
export interface Pool {
  /** For the next statement only: not to be kept. */
  readonly sql: Sql
  /**
   * Gives up every connection, for new ones: a half-open one would swallow statements for as long as TCP believes
   * in it. What still runs on them has a second to finish, or that many. A client that its owner closes stays.
   */
  renew (seconds?: number): void
  /** To be told, at once, of a statement that failed since its connection did. */
  fail (sql: Sql, failure: Failure): void
  close (): Promise<void>
}

export interface PoolOptions {
  /** `postgres://…`; or a postgres.js client that its owner closes, which stays as it is. */
  database: string | Sql
  /** Connections, where Usher opens them. */
  poolSize: number
  /** Milliseconds until PostgreSQL gives a statement up, on those connections. */
  statementTimeout: number
}

// What is its owner's stays as it is.
const leave = async () => {}

/** Opens a pool, or takes a client. Throws a `TypeError` for a URL that is none. */
export function openPool ({ database, poolSize, statementTimeout }: PoolOptions): Pool {
  if (typeof database !== 'string') return { sql: database, renew: leave, fail: leave, close: leave }
  // Statements that failed since no connection was to be had; each of those closes without having been open.
  let unopened = 0
  let { sql, end } = open()

  function open () {
    const opened = openClient(database as string, poolSize, statementTimeout, () => {
      if (sql !== opened.sql) return
      if (unopened > 0) unopened--
      else renew()
    })
    unopened = 0
    return opened
  }

  // A connection that was reset is not safe in postgres.js: until its 'close' event it takes statements, which it
  // then neither sends nor fails; the next connection in its place answers them, with nothing, or with what was
  // meant for others. So with a connection that is lost go all.
  function renew (seconds = FAREWELL_SECONDS): void {
    void end(seconds);
    ({ sql, end } = open())
  }

  return {
    get sql () { return sql },
    renew,

    fail (failed, { code = '' }) {
      if (failed !== sql) return
      if (losses.has(code)) renew()
      else unopened++
    },

    close: () => end(FAREWELL_SECONDS),
  }
}

const losses = new Set(['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'])

function openClient (url: string, max: number, statementTimeout: number, onclose: () => void) {
  const given = postgres(url, {
    max,
    connect_timeout: 1,
    // After an outage the next statement connects at once; the gate keeps the crowd away meanwhile.
    backoff: () => 0,
    onnotice: () => {},
    onclose,
    // Otherwise each connection asks for them first, and one that is lost meanwhile is an unhandled rejection.
    fetch_types: false,
    types: { array },
    connection: {
      application_name: 'usher',
      statement_timeout: statementTimeout,
      // The locks of a transaction whose node is gone.
      idle_in_transaction_session_timeout: statementTimeout,
    },
  })
  const sockets = createSockets(given.options)
  const sql: Sql = postgres({ ...given.options, ...sockets.options } as never)
  return { sql, end: (seconds: number) => sql.end({ timeout: seconds }).then(sockets.destroy) }
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
