import type { Test } from 'tap'
import type { Sql, TransactionSql } from 'postgres'
import type { LoggedIn, TestUsher } from './app.ts'
import { openSql, untilBlocked } from './sql.ts'

/** What another transaction does, so that a request waits for it. */
export type Lock = (trx: TransactionSql) => Promise<unknown>

/**
 * Returns a function that takes a lock, sends a request, ends the session of a user once the request waits for the lock, and releases it.
 * It returns the response.
 * @param end what happens in place of a logout, by the same transaction or otherwise
 */
export function createEndDuring (t: Test, usher: TestUsher, max = 4) {
  const sql = openSql(t, usher, max)
  const logout = async ({ headers }: LoggedIn): Promise<void> => {
    const { statusCode } = await usher.inject('POST', '/api/auth/logout', { headers })
    if (statusCode !== 204) throw new Error(`logout: ${statusCode}`)
  }

  async function endDuring<Result> (
    user: LoggedIn, lock: Lock, request: () => Promise<Result>, end: Lock = () => logout(user)
  ): Promise<Result> {
    // A promise as the result of the transaction would be awaited before the commit.
    const { response } = await sql.begin(async (trx) => {
      await lock(trx)
      const response = request()
      await untilBlocked(sql, usher)
      await end(trx)
      return { response }
    })
    return response
  }

  return { sql, logout, endDuring } satisfies { sql: Sql, [name: string]: unknown }
}

/** A lock on a whole table. */
export const lockTable = (name: string): Lock => (trx) => trx`lock table ${trx(name)}`
