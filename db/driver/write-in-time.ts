import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { Overloaded } from '../../schema/errors.ts'
import type { Clock } from './clock.ts'
import { isUndecided } from './circuit-breaker.ts'
import type { Failure } from './sockets.ts'

// Less than the second in which a request is answered while the database is away (contract 1.10).
const BEGIN_MS = 600
const PATIENCE_MS = 10_000
const DIVISION_BY_ZERO = '22012'

/**
 * A condition for the rows of a write: it fails the statement with an error if that begins at `until` or later, which is
 * text as PostgreSQL reads it. An expression rather than a function, so that it needs no migration; Usher divides
 * nowhere else.
 */
export const isInTime = (until: string) => sql<boolean>`1 / (clock_timestamp() < ${until}::timestamptz)::int = 1`

/**
 * Runs a write that overwrites what others may have written, such as a change of a user. What was sent to a database that
 * stalls, or waits in the network, may be executed long after its request was answered with 503: then it would undo what
 * was acknowledged meanwhile. So PostgreSQL begins it in time or not at all, and nobody gets a 503 before that time is
 * over. A write that comes too late, behind others on its connection, is sent again.
 *
 * @param write sends one statement, or a transaction, which has `isInTime(until)` as a condition
 * @param confirm throws if the client must not write; runs before each attempt
 */
export type WriteInTime = <Result>(write: (until: string) => Promise<Result>, confirm: () => Promise<void>) => Promise<Result>

export function createWriteInTime (clock: Clock): WriteInTime {
  return async function writeInTime (write, confirm) {
    const giveUpAt = performance.now() + PATIENCE_MS
    while (performance.now() < giveUpAt) {
      await confirm()
      const until = clock.now() + BEGIN_MS
      try {
        return await write(new Date(until).toISOString())
      } catch (error) {
        if ((error as Failure).code === DIVISION_BY_ZERO) continue
        if (isUndecided(error)) await delay(Math.max(0, until + clock.uncertainty - clock.now()))
        throw error
      }
    }
    throw new Overloaded()
  }
}
