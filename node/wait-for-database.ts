import { setTimeout as delay } from 'node:timers/promises'
import { isOutage } from '../db/driver/circuit-breaker.ts'
import { readClientOptions } from '../db/driver/client-options.ts'
import { openClient, type Failure } from '../db/driver/sockets.ts'
import { multiplyDeadlines, type Deadlines } from '../schema/options/deadlines.ts'
import { DatabaseUnavailable } from '../schema/http/errors.ts'
import { explain, nameOf } from './data.ts'
import type { Messages } from './terminal/print.ts'
import { showProgress } from './terminal/progress.ts'
import type { Settings } from './settings/settings.ts'

const PAUSE_MS = 500
// A standby that may be promoted, or a database that is set to read only.
const READ_ONLY = 'READ_ONLY'
// PostgreSQL starts, or has no connection left.
const TEMPORARY = /^(57P03|53300)$/

/** Throws an `Error` with a sentence if the database of `DATABASE_URL` does not answer at once. */
export async function requireAnswer (settings: Settings): Promise<void> {
  const { DATABASE_URL, DEADLINE_FACTOR } = settings
  const cause = DATABASE_URL && await probe(DATABASE_URL, multiplyDeadlines(DEADLINE_FACTOR))
  if (!cause) return
  const error = new DatabaseUnavailable({ cause })
  throw new Error(explain(error, settings), { cause: error })
}

/**
 * Waits until the database of `DATABASE_URL` answers and accepts writes, for at most `DATABASE_WAIT_SECONDS`, and
 * prints that it waits. Other errors than an outage are left to the statements that follow. Throws
 * `DatabaseUnavailable` when the time is over or the signal aborts.
 */
export async function waitForDatabase (
  { DATABASE_URL, DATABASE_WAIT_SECONDS: maxSeconds, DEADLINE_FACTOR }: Settings, messages: Messages,
  signal?: AbortSignal
): Promise<void> {
  if (!DATABASE_URL) return
  const deadlines = multiplyDeadlines(DEADLINE_FACTOR)
  const since = performance.now()
  const progress = showProgress(messages, 'Waiting for the database', (seconds) => `${Math.floor(seconds)} s`)
  let isWaiting = false
  try {
    for (;;) {
      const cause = await probe(DATABASE_URL, deadlines, signal)
      if (!cause) break
      const passed = (performance.now() - since) / 1000
      if (signal?.aborted || passed >= maxSeconds) throw new DatabaseUnavailable({ cause })
      const why = cause.code === READ_ONLY ? 'accepts no writes' : 'cannot be reached'
      const name = nameOf(DATABASE_URL)
      if (!isWaiting) {
        messages.printWarning(`DATABASE_URL: ${name} ${why} (${cause.code}): waiting for up to ${maxSeconds} seconds.`)
      }
      isWaiting = true
      progress.update(passed, maxSeconds)
      await delay(PAUSE_MS, undefined, signal && { signal }).catch(() => {})
    }
  } finally {
    progress.end()
  }
  if (isWaiting) messages.print('The database can be reached.')
}

// Returns why the database cannot be reached at the moment, or undefined if it answers.
async function probe (url: string, deadlines: Deadlines, signal?: AbortSignal): Promise<Failure | undefined> {
  const { databaseStart: timeoutMs } = deadlines
  const options = readClientOptions(url, timeoutMs, deadlines)
  // It is no node, whose name a restore looks for.
  const connection = { ...options.connection, application_name: 'usher-probe' }
  const { sql, end } = openClient(options, { max: 1, connect_timeout: timeoutMs / 1000, connection }, 1)
  const giveUp = () => { end().catch(() => {}) }
  signal?.addEventListener('abort', giveUp)
  let isSilent = false
  // A pooler that is paused, or a server that is frozen, accepts connections and does not answer.
  const timer = setTimeout(() => {
    isSilent = true
    giveUp()
  }, timeoutMs)
  try {
    const [row] = await sql`show transaction_read_only`
    if (row?.['transaction_read_only'] === 'on') {
      return Object.assign(new Error('the database accepts no writes'), { code: READ_ONLY })
    }
  } catch (error) {
    if (isSilent) return Object.assign(new Error('the database does not answer'), { code: 'it does not answer' })
    const { code = '' } = error as Failure
    if (isOutage(error as Failure) || TEMPORARY.test(code)) return error as Failure
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', giveUp)
    await end()
  }
}
