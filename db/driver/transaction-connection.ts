import type { Row, RowList } from 'postgres'
import type { ClientOptions } from './client.ts'
import { isLoss } from './circuit-breaker.ts'
import { send } from './send.ts'
import { connectionClosed, openClient, type Client, type Failure } from './sockets.ts'

/**
 * A connection that is used by one transaction at a time: a separate postgres.js client that connects only once.
 * `begin` and `reserve` of postgres.js take a connection of a shared pool, and can return it to the pool inside the
 * open transaction, when BEGIN fills the pipeline or when the socket drains (porsager/postgres#1189, #823, #1204). And
 * if the client could reconnect, it would run the rest of a transaction outside of it.
 */
export class TransactionConnection {
  readonly #client: Client
  readonly #closed = Promise.withResolvers<never>()
  #usable = true

  constructor (options: ClientOptions) {
    this.#client = openClient(options, {
      max: 1,
      // Either of these would close the connection between two statements of a transaction.
      idle_timeout: null,
      max_lifetime: null,
      onclose: () => this.#lose(),
    }, 1)
    this.#closed.promise.catch(() => {})
  }

  /** Whether the connection can run further statements. */
  get usable (): boolean {
    return this.#usable
  }

  /**
   * Runs a statement. Throws if the connection was lost before, or is lost meanwhile.
   * @param prepare whether PostgreSQL keeps its plan, see `db/driver/replanned.ts`
   */
  async run (text: string, parameters: readonly unknown[] = [], prepare = false): Promise<RowList<Row[]>> {
    if (!this.#usable) throw connectionClosed()
    try {
      // postgres.js may never settle a statement that it received between the reset of its socket and the 'close'
      // event.
      return await Promise.race([send(this.#client.sql, text, parameters, prepare), this.#closed.promise])
    } catch (error) {
      if (isLoss(error as Failure)) this.#lose()
      throw error
    }
  }

  /** Closes the connection at once. PostgreSQL rolls back an open transaction. */
  destroy (): void {
    this.#lose()
    void this.#client.end()
  }

  #lose (): void {
    this.#usable = false
    this.#closed.reject(connectionClosed())
  }
}
