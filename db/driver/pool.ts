import postgres, { type Sql } from 'postgres'
import type { ClientOptions } from './client-options.ts'
import { createSockets, type Failure } from './sockets.ts'

const FAREWELL_SECONDS = 1

/** Connections that many statements share: each carries several at a time, and never a transaction. */
export interface Pool {
  /** The client for the next statement. Do not keep it: `renew` replaces it. */
  readonly sql: Sql
  /**
   * Replaces every connection with a new one: a half-open one would take statements for as long as TCP believes in it.
   * Statements that are still running on the old ones have that many seconds to finish, by default one.
   */
  renew (seconds?: number): void
  /** Reports, at once, a statement that failed because its connection did. */
  fail (sql: Sql, failure: Failure): void
  close (): Promise<void>
}

/** Creates a pool of at most `size` connections, each opened when it is needed. */
export function createPool (options: ClientOptions, size: number): Pool {
  // Statements that failed because no connection could be opened. Each of those closes without having been open.
  let unopened = 0
  let { sql, end } = open()

  function open () {
    const opened = openClient(options, size, () => {
      if (sql !== opened.sql) return
      if (unopened > 0) unopened--
      else renew()
    })
    unopened = 0
    return opened
  }

  // A connection that was reset is not safe in postgres.js: until its 'close' event it takes statements, which it
  // then neither sends nor fails; the next connection in its place answers them with nothing, or with what was meant
  // for others. So one lost connection ends all of them.
  function renew (seconds = FAREWELL_SECONDS): void {
    void end(seconds);
    ({ sql, end } = open())
  }

  return {
    get sql () { return sql },
    renew,

    fail (failed, { code = '' }) {
      if (failed !== sql) return
      // Whatever else waits on a connection inside a transaction must not be sent into it.
      if (code === UNSAFE_TRANSACTION) renew(0)
      else if (losses.has(code)) renew()
      else unopened++
    },

    close: () => end(FAREWELL_SECONDS),
  }
}

/** The error of postgres.js for a connection that is inside a transaction which nobody owns (porsager/postgres#823). */
export const UNSAFE_TRANSACTION = 'UNSAFE_TRANSACTION'

const losses = new Set(['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'])

function openClient (options: ClientOptions, max: number, onclose: () => void) {
  const sockets = createSockets(options)
  const sql: Sql = postgres({ ...options, ...sockets.options, max, onclose } as never)
  return { sql, end: (seconds: number) => sql.end({ timeout: seconds }).then(sockets.destroy) }
}
