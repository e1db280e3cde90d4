import { DEADLINES } from '../../schema/options/deadlines.ts'
import { Overloaded } from '../../schema/http/errors.ts'
import type { ClientOptions } from './client.ts'
import { TransactionConnection } from './transaction-connection.ts'

// Connections stay open for a while, for the next burst of transactions.
const IDLE_MS = 10_000
const MAX_WAITING = 1000

export interface TransactionPoolOptions {
  /** The maximum number of connections. */
  size: number
  /** The number of transactions that may wait for a connection. */
  maxWaiting?: number
  /** Milliseconds for which a transaction waits for a connection. */
  timeoutMs?: number
  /** Milliseconds for which an unused connection stays open. */
  idle?: number
}

/** The connections for transactions. They are opened on demand and used by one transaction at a time. */
export interface TransactionPool {
  /** The number of connections that are open, and of transactions that wait for one. */
  readonly open: number
  readonly waiting: number
  /**
   * Resolves with a connection, which the caller has to release. Rejects with `Overloaded` if none becomes free in
   * time.
   */
  acquire (): Promise<TransactionConnection>
  /**
   * Returns a connection to the pool, or closes it.
   * @param clean whether it is outside any transaction; otherwise it is closed
   */
  release (connection: TransactionConnection, clean: boolean): void
  /** Closes every connection, including those in use. */
  destroy (): void
}

/**
 * Creates a pool for transactions. It connects on demand.
 * @param optionsOf returns the options of the next connection
 */
export function createTransactionPool (
  optionsOf: () => ClientOptions,
  { size, maxWaiting = MAX_WAITING, timeoutMs = DEADLINES.transaction, idle: idleMs = IDLE_MS }: TransactionPoolOptions
): TransactionPool {
  const all = new Set<TransactionConnection>()
  const idle = new Map<TransactionConnection, NodeJS.Timeout>()
  // Oldest first.
  const waiting = new Set<(connection: TransactionConnection) => void>()

  function open (): TransactionConnection {
    const connection = new TransactionConnection(optionsOf())
    all.add(connection)
    return connection
  }

  function remove (connection: TransactionConnection): void {
    all.delete(connection)
    clearTimeout(idle.get(connection))
    idle.delete(connection)
    connection.destroy()
  }

  function takeIdle (): TransactionConnection | undefined {
    // The one that was used last, so that the others stay idle for long enough to be closed.
    const connection = [...idle.keys()].at(-1)
    if (!connection) return undefined
    clearTimeout(idle.get(connection))
    idle.delete(connection)
    if (connection.usable) return connection
    remove(connection)
    return takeIdle()
  }

  function wait (): Promise<TransactionConnection> {
    if (waiting.size >= maxWaiting) return Promise.reject(new Overloaded())
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(take)
        reject(new Overloaded())
      }, timeoutMs).unref()
      waiting.add(take)

      function take (connection: TransactionConnection): void {
        clearTimeout(timer)
        waiting.delete(take)
        resolve(connection)
      }
    })
  }

  return {
    get open () { return all.size },
    get waiting () { return waiting.size },

    acquire: async () => takeIdle() ?? (all.size < size ? open() : wait()),

    release (connection, clean) {
      // The pool may have been destroyed meanwhile.
      if (!all.has(connection)) return
      const reusable = clean && connection.usable
      if (!reusable) remove(connection)
      const [next] = waiting
      if (next) next(reusable ? connection : open())
      else if (reusable) idle.set(connection, setTimeout(remove, idleMs, connection).unref())
    },

    destroy () {
      for (const connection of all) remove(connection)
    },
  }
}
