import postgres, { type Sql } from 'postgres'
import type { ClientOptions } from './client-options.ts'
import { createSockets, type Failure } from './sockets.ts'

const FAREWELL_SECONDS = 1

/** A pool of connections that statements share. Each connection carries several statements at a time, but no transaction. */
export interface Pool {
  /** The postgres.js client for the next statement. Do not keep it, because `renew` replaces it. */
  readonly sql: Sql
  /** The number of its connections that are open. */
  readonly open: number
  /**
   * Replaces every connection with a new one, since a half-open connection would accept statements until TCP gives it up
   * (porsager/postgres#1089).
   * Statements that are still running on the old connections have `seconds` to finish, by default one.
   */
  renew (seconds?: number): void
  /** Reports a statement of the client `sql` that failed because its connection did. Call it at once. */
  fail (sql: Sql, failure: Failure): void
  close (): Promise<void>
}

/** Creates a pool of at most `size` connections, which are opened on demand. */
export function createPool (options: ClientOptions, size: number): Pool {
  // The number of statements that failed because no connection could be opened. Each such attempt also causes a call of
  // `onclose`, which is not the loss of a connection.
  let unopened = 0
  let { sql, end, sockets } = open()

  function open () {
    const opened = openClient(options, size, () => {
      if (sql !== opened.sql) return
      if (unopened > 0) unopened--
      else renew()
    })
    unopened = 0
    return opened
  }

  // If one connection is lost, all are replaced. In postgres.js 3.4.9, a connection that was reset accepts statements until its
  // 'close' event, but neither sends nor fails them. The next connection in its place then resolves them with an empty result, or
  // with the results of other statements.
  function renew (seconds = FAREWELL_SECONDS): void {
    void end(seconds);
    ({ sql, end, sockets } = open())
  }

  return {
    get sql () { return sql },
    get open () { return sockets.open },
    renew,

    fail (failed, { code = '' }) {
      if (failed !== sql) return
      // Other statements that wait on that connection must not be sent into the transaction, so they get no time to finish.
      if (code === UNSAFE_TRANSACTION) renew(0)
      else if (losses.has(code)) renew()
      else unopened++
    },

    close: () => end(FAREWELL_SECONDS),
  }
}

/** The code of postgres.js for a BEGIN on a shared connection, which is then inside an open transaction (porsager/postgres#823). */
export const UNSAFE_TRANSACTION = 'UNSAFE_TRANSACTION'

const losses = new Set(['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'])

function openClient (options: ClientOptions, max: number, onclose: () => void) {
  const sockets = createSockets(options)
  const sql: Sql = postgres({ ...options, ...sockets.options, max, onclose } as never)
  return { sql, sockets, end: (seconds: number) => sql.end({ timeout: seconds }).then(sockets.destroy) }
}
