import postgres, { type Row, type RowList, type Sql } from 'postgres'
import type { ClientOptions } from './client-options.ts'
import { isOutage } from './circuit-breaker.ts'
import { connectionClosed, createSockets, type Failure, type Sockets } from './sockets.ts'

/**
 * A connection that one transaction at a time has for itself: a client of its own, which connects once. The `begin` and
 * `reserve` of postgres.js pick a connection of a shared pool, and can hand one to somebody else inside a transaction:
 * when BEGIN fills the pipeline, and when the socket drains (porsager/postgres#1189, #823, #1204). And a client that
 * may reconnect would run the rest of a transaction outside of it.
 */
export class TransactionConnection {
  readonly #sql: Sql
  readonly #sockets: Sockets
  readonly #closed = Promise.withResolvers<never>()
  #usable = true

  constructor (options: ClientOptions) {
    this.#sockets = createSockets(options, 1)
    this.#sql = postgres({
      ...options,
      ...this.#sockets.options,
      max: 1,
      // Both would close the connection between two statements of a transaction.
      idle_timeout: null,
      max_lifetime: null,
      onclose: () => this.#lose(),
    } as never)
    this.#closed.promise.catch(() => {})
  }

  /** Whether another statement can run on it. */
  get usable (): boolean {
    return this.#usable
  }

  /** Runs a statement. Throws if the connection is lost, by then or meanwhile. */
  async run (text: string, parameters: readonly unknown[] = []): Promise<RowList<Row[]>> {
    if (!this.#usable) throw connectionClosed()
    try {
      // postgres.js may never settle a statement that it was given between the reset of its socket and the 'close' event.
      return await Promise.race([this.#sql.unsafe(text, parameters as never[], { prepare: true }), this.#closed.promise])
    } catch (error) {
      if (isLost(error as Failure)) this.#lose()
      throw error
    }
  }

  /** Closes the connection at once. PostgreSQL rolls back what was not committed. */
  destroy (): void {
    this.#lose()
    void this.#sql.end({ timeout: 0 }).then(this.#sockets.destroy)
  }

  #lose (): void {
    this.#usable = false
    this.#closed.reject(connectionClosed())
  }
}

// PostgreSQL closes a connection after an error that it calls fatal.
function isLost (error: Failure & { severity?: string }): boolean {
  return isOutage(error) || error.severity === 'FATAL'
}
