import type { Row, RowList, Sql } from 'postgres'
import { isOutage } from './gate.ts'

/** A transaction that has begun, on a connection of its own until it ends. */
export interface OpenTransaction {
  /** Sends a statement. Throws where the connection was lost: a later one would run outside of any transaction. */
  execute (text: string, parameters: readonly unknown[]): Promise<RowList<Row[]>>
  /** Throws where the transaction cannot be committed; whether it was, nobody knows when the connection was lost. */
  commit (): Promise<unknown>
  /** Never throws: what cannot be rolled back any more has been. */
  rollback (): Promise<unknown>
}

const ROLLBACK = new Error('rollback')

/**
 * Opens a transaction for as long as its owner pleases. By the `begin` of postgres.js, since its `reserve` tells
 * nothing of a lost connection: what was sent on it then ended the process, or ran on the connection that
 * somebody else had opened in its place.
 */
export function beginTransaction (sql: Sql, options: string): Promise<OpenTransaction> {
  return new Promise((resolve, reject) => {
    const owner = Promise.withResolvers<void>()
    let lost: Error | undefined
    const ended = sql.begin(options, (transaction) => {
      resolve({ execute, commit, rollback })
      return owner.promise

      async function execute (text: string, parameters: readonly unknown[]) {
        if (lost) throw lost
        try {
          // Of a connection that was reset the statement itself may hear nothing.
          return await Promise.race([transaction.unsafe(text, parameters as never[], { prepare: true }), ended as Promise<never>])
        } catch (error) {
          if (isOutage(error as Error)) lost = error as Error
          throw error
        }
      }
    })
    ended.catch((error) => {
      lost ??= error
      reject(error)
    })

    function commit (): Promise<void> {
      if (!lost) owner.resolve()
      return ended
    }

    async function rollback (): Promise<void> {
      if (lost) return
      owner.reject(ROLLBACK)
      await ended.catch(() => {})
    }
  })
}
