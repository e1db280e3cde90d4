import { Overloaded } from '../../schema/errors.ts'
import type { ClientOptions } from './client-options.ts'
import { TransactionConnection } from './transaction-connection.ts'

// A burst of transactions keeps its connections for the next one.
const IDLE_MS = 10_000
const WAITING = 1000
const PATIENCE_MS = 5000

export interface TransactionPoolOptions {
  /** Connections at the most. */
  size: number
  /** Transactions that may wait for a connection. */
  waiting?: number
  /** Milliseconds that each of them waits. */
  patience?: number
  /** Milliseconds that a connection stays open without being used. */
  idle?: number
}

/** The connections of transactions: opened on demand, and used by one transaction at a time. */
export interface TransactionPool {
  /** Returns a connection that its caller has to give back. Rejects with `Overloaded` if none becomes free in time. */
  acquire (): Promise<TransactionConnection>
  /** Takes a connection back. One that is not `clean`, that is outside of any transaction, is closed. */
  release (connection: TransactionConnection, clean: boolean): void
  /** Closes every connection, those in use included. */
  destroy (): void
}

export function createTransactionPool (
  options: ClientOptions, { size, waiting: room = WAITING, patience = PATIENCE_MS, idle: idleMs = IDLE_MS }: TransactionPoolOptions
): TransactionPool {
  const all = new Set<TransactionConnection>()
  const idle = new Map<TransactionConnection, NodeJS.Timeout>()
  // In the order of their arrival.
  const waiting = new Set<(connection: TransactionConnection) => void>()

  function open (): TransactionConnection {
    const connection = new TransactionConnection(options)
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
    // The latest one, so that the others can become idle for long enough to be closed.
    const connection = [...idle.keys()].at(-1)
    if (!connection) return undefined
    clearTimeout(idle.get(connection))
    idle.delete(connection)
    if (connection.usable) return connection
    remove(connection)
    return takeIdle()
  }

  function wait (): Promise<TransactionConnection> {
    if (waiting.size >= room) return Promise.reject(new Overloaded())
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(take)
        reject(new Overloaded())
      }, patience).unref()
      waiting.add(take)

      function take (connection: TransactionConnection): void {
        clearTimeout(timer)
        waiting.delete(take)
        resolve(connection)
      }
    })
  }

  return {
    acquire: async () => takeIdle() ?? (all.size < size ? open() : wait()),

    release (connection, clean) {
      // It may have been destroyed meanwhile.
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
