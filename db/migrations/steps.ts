import { setTimeout as delay } from 'node:timers/promises'
import { sql, type Kysely } from 'kysely'
import { DEADLINES } from '../../schema/options/deadlines.ts'
import { openSession } from '../driver/session.ts'
import { allowPauses, lock } from '../driver/postgres.ts'
import { StartError } from '../driver/start-errors.ts'
import type { Tables } from '../tables/index.ts'

/** What a migration is doing. */
export interface MigrationStep {
  /** The name of the migration; absent while another node migrates. */
  migration?: string
  state: 'started' | 'waiting' | 'building' | 'ended'
  /** The index that is being built. */
  index?: string
  /** How many of its blocks are done. */
  done?: number
  total?: number
}

/** Receives what a migration is doing. */
export type ReportStep = (step: MigrationStep) => void

/** Rejects if work is not done in time. */
export type Limit = <Result>(work: Promise<Result>) => Promise<Result>

// While a statement waits for a lock on a table, every later statement on the table waits behind it, so it must not
// wait for long.
const LOCK_TIMEOUT_MS = 200
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5000
const POLL_MS = 200
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Runs a migration in a transaction that waits only briefly for locks. If another transaction has one, it is rolled
 * back and tried again after a pause, for five minutes. Throws a `StartError` then.
 */
export async function inShortTransaction (
  db: Kysely<Tables>, schema: string, run: (trx: Kysely<Tables>) => Promise<void>, onWait: () => void,
  timeoutMs = DEADLINES.migrationLock
): Promise<void> {
  const until = performance.now() + timeoutMs
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      return await db.transaction().execute(async (trx) => {
        // Filling a new table may take a while.
        await sql`set local statement_timeout = 0`.execute(trx)
        await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT_MS)}`.execute(trx)
        // While a node starts, its event loop may be busy with other plugins.
        await allowPauses(trx)
        // Nodes of releases that migrate in a single transaction hold this lock until their commit.
        await lock(trx, `migrations of ${schema}`)
        await run(trx)
      })
    } catch (error) {
      if (!isLocked(error)) throw error
      if (performance.now() > until) {
        throw lockNotFree(`a migration of the schema "${schema}"`, timeoutMs)
      }
      onWait()
      await delay(pause * (0.5 + Math.random()))
    }
  }
}

/** Returns the error of a migration that has waited for too long. */
export const lockNotFree = (what: string, timeoutMs: number): StartError =>
  new StartError(`${what} did not get a lock for ${Math.round(timeoutMs / 1000)} seconds, because another transaction has ` +
    'it. End that transaction (see pg_stat_activity, the oldest xact_start) and start again. What has been migrated so far remains')

function isLocked (error: unknown): boolean {
  const { code, cause } = error as { code?: string, cause?: { code?: string } }
  return code === LOCK_NOT_AVAILABLE || cause?.code === LOCK_NOT_AVAILABLE
}

/**
 * Runs `work` while no other node migrates the schema. It asks for the lock again and again: a statement that waits for
 * it would hold a snapshot, and the node that has the lock could wait for the end of that snapshot to build an index.
 */
export async function whileAlone (
  db: Kysely<Tables>, schema: string, work: () => Promise<void>, onWait: () => void, limit: Limit
): Promise<void> {
  const session = openSession(db)
  try {
    await limit(session.run('begin'))
    await limit(session.run('set local idle_in_transaction_session_timeout = 0'))
    for (let waits = 0; !await limit(tryLock()); waits++) {
      if (waits === 0) onWait()
      await delay(POLL_MS)
    }
    await work()
    await session.run('commit')
  } finally {
    session.destroy()
  }

  // Without parameters, because the portal of a statement with parameters keeps its snapshot until the transaction
  // ends.
  async function tryLock (): Promise<boolean> {
    const key = sql.lit(`usher node that migrates ${schema}`)
    const rows = await session.run(
      sql`select pg_try_advisory_xact_lock(hashtextextended(${key}, 0)) as locked`.compile(db).sql
    )
    return rows[0]!['locked'] as boolean
  }
}
