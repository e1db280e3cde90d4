import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import postgres from 'postgres'
import type { Deadlines } from '../../schema/options/deadlines.ts'
import { Overloaded } from '../../schema/http/errors.ts'
import type { Clock } from './clock.ts'
import { isUndecided } from './circuit-breaker.ts'

// A text that is no boolean. Nobody else knows it, so no trigger, constraint or hook of the host, and no value of a
// client, can fail a statement with an error that quotes it.
const TOO_LATE = `usher: too late ${randomUUID()}`

/**
 * Returns a condition for the WHERE clause of a write. It makes the statement fail, so that `isTooLate` recognises the
 * error, if PostgreSQL begins it at `until` or later. It is an expression rather than a function of the database, so
 * that it needs no migration.
 * @param until a timestamp as text
 */
export const isInTime = (until: string) =>
  sql<boolean>`(case when clock_timestamp() < ${until}::timestamptz then 'true' else ${sql.lit(TOO_LATE)} end)::boolean`

/**
 * Returns whether a statement has failed because of `isInTime`. PostgreSQL quotes the text in its message, in any
 * language.
 */
export function isTooLate (error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '22P02' && error.message.includes(TOO_LATE)
}

/**
 * Runs a write that overwrites data that others may have written, such as a change of a user. A statement that a
 * stalled database or the network holds up may be executed long after its request got a 503, and would then undo
 * changes that were acknowledged meanwhile. Therefore PostgreSQL begins the write in time or not at all, and no request
 * gets a 503 before that time is over. A write that comes too late because it waited behind others on its connection is
 * sent again.
 *
 * It measures time by the database's clock. Rejects with `Overloaded` when the attempts have taken too long.
 * @param write sends a statement, or a transaction, with the condition `isInTime(until)`
 * @param confirmer who writes, and is asked before each attempt
 */
export type WriteInTime =
  <Result>(write: (until: string) => Promise<Result>, confirmer: Confirmer) => Promise<Result>

/** Makes one attempt of `WriteInTime`. Returns `tooLate` if PostgreSQL has not begun the write in time. */
export type WriteOnce = <Result>(write: (until: string) => Promise<Result>) => Promise<Result | typeof tooLate>

/** The result of a write that was not made. */
export const tooLate = Symbol('too late')

/** Who writes, such as a `Caller` (`plugins/access/caller.ts`). */
export interface Confirmer {
  /** Throws if they may not act any more. It is called right before a write is sent, or takes effect. */
  confirm (): Promise<void>
}

/** Creates the functions that make writes in time. */
export function createWriteInTime (
  clock: Clock, deadlines: Pick<Deadlines, 'write' | 'writeBegin'>
): { writeInTime: WriteInTime, writeOnce: WriteOnce } {
  const writeOnce: WriteOnce = async (write) => {
    const until = clock.now() + deadlines.writeBegin
    try {
      return await write(new Date(until).toISOString())
    } catch (error) {
      if (isTooLate(error)) return tooLate
      if (isUndecided(error)) await delay(Math.max(0, until + clock.uncertainty - clock.now()))
      throw error
    }
  }

  const writeInTime: WriteInTime = async (write, confirmer) => {
    const giveUpAt = performance.now() + deadlines.write
    while (performance.now() < giveUpAt) {
      await confirmer.confirm()
      const result = await writeOnce(write)
      if (result !== tooLate) return result
    }
    throw new Overloaded()
  }

  return { writeInTime, writeOnce }
}
