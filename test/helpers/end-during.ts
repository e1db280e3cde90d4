import type { Test } from 'tap'
import type { TransactionSql } from 'postgres'
import type { LoggedIn, TestUsher } from './app.ts'
import { openSql, untilBlocked } from './sql.ts'
import { whileTemporary } from './temporary-errors.ts'

/** What another transaction does, so that a request waits for it. */
export type Lock = (trx: TransactionSql) => Promise<unknown>

function codeOf (result: unknown): string | undefined {
  const { body = JSON.stringify(result) } = result as { body?: string }
  return /DATABASE_UNAVAILABLE|OVERLOADED/.exec(body)?.[0]
}

/** Creates `endDuring`, with connections for it. */
export function createEndDuring (t: Test, usher: TestUsher) {
  const sql = openSql(t, usher, 4)
  const logout = async ({ headers }: LoggedIn): Promise<void> => {
    const { statusCode } = await usher.inject('POST', '/api/auth/logout', { headers })
    if (statusCode !== 204) throw new Error(`logout: ${statusCode}`)
  }

  /**
   * Takes a lock, sends a request, ends the session of a user once the request waits for the lock, and releases it.
   * Returns the response.
   * @param end what happens in place of a logout, by the same transaction or otherwise
   */
  async function endDuring<Result> (
    user: LoggedIn, lock: Lock, request: () => Promise<Result>, end: Lock = () => logout(user)
  ): Promise<Result> {
    // A promise as the result of the transaction would be awaited before the commit.
    const { response } = await sql.begin(async (trx) => {
      await lock(trx)
      const response = whileTemporary(request, codeOf)
      await untilBlocked(sql, usher)
      await end(trx)
      return { response }
    })
    return response
  }

  return { sql, logout, endDuring }
}

/** A lock on a whole table. */
export const lockTable = (name: string): Lock => (trx) => trx`lock table ${trx(name)}`
