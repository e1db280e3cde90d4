import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Deadlines } from '../../schema/deadlines.ts'
import { Overloaded } from '../../schema/errors.ts'
import type { Clock } from './clock.ts'
import { isUndecided } from './circuit-breaker.ts'
import type { Failure } from './sockets.ts'

/** The code of the error with which a statement fails that begins too late. */
export const DIVISION_BY_ZERO = '22012'

/**
 * Returns a condition for the WHERE clause of a write. It makes the statement fail, with a division by zero, if PostgreSQL begins
 * it at `until` or later. It is an expression rather than a function of the database, so that it needs no migration. Usher divides
 * nowhere else, so the error is unambiguous.
 * @param until a timestamp as text
 */
export const isInTime = (until: string) => sql<boolean>`1 / (clock_timestamp() < ${until}::timestamptz)::int = 1`

/**
 * Runs a write that overwrites data that others may have written, such as a change of a user. A statement that a stalled database
 * or the network holds up may be executed long after its request got a 503, and would then undo changes that were acknowledged
 * meanwhile. Therefore PostgreSQL begins the write in time or not at all, and no request gets a 503 before that time is over. A
 * write that comes too late because it waited behind others on its connection is sent again.
 *
 * @param write sends a statement, or a transaction, with the condition `isInTime(until)`
 * @param confirm runs before each attempt, and throws if the client must not write
 */
export type WriteInTime = <Result>(write: (until: string) => Promise<Result>, confirm: () => Promise<void>) => Promise<Result>

/** Creates `writeInTime`, which measures time by the database's clock. It rejects with `Overloaded` when the attempts have taken too long. */
export function createWriteInTime (clock: Clock, deadlines: Pick<Deadlines, 'write' | 'writeBegin'>): WriteInTime {
  return async function writeInTime (write, confirm) {
    const giveUpAt = performance.now() + deadlines.write
    while (performance.now() < giveUpAt) {
      await confirm()
      const until = clock.now() + deadlines.writeBegin
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
