import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import type { Row, RowList } from 'postgres'
import { inTime } from '../../schema/runtime/in-time.ts'
import type { Backends } from './backends.ts'
import type { CircuitBreaker } from './circuit-breaker.ts'
import type { Failure } from './sockets.ts'

// PostgreSQL cancels a statement at the statement timeout. If no answer arrives within this time after it, the
// connection counts as lost, even if no error has been reported.
const GRACE_MS = 1000
const RETRY_MS = 100

/** The log for outages and for faults of connections. */
export interface Log {
  warn (details: object, message: string): void
  info (message: string): void
  error (details: object, message: string): void
}

/** Handles the outages that a heartbeat detects. */
export interface Outages {
  /** The number of statements that have been answered so far. */
  readonly answers: number
  /** Whether statements wait for an answer, whose absence heartbeats have to detect. */
  readonly isWaiting: boolean
  /**
   * Called when a heartbeat was answered.
   * @param query runs a statement on the connection of heartbeats
   * @param timeoutMs milliseconds after which unanswered statements may have stalled
   */
  onAnswer (query: (statement: string) => Promise<RowList<Row[]>>, timeoutMs: number): void | Promise<void>
  /**
   * Called when the database does not answer, or cannot be connected to.
   * @param answers the value of `answers` when it stopped answering
   * @param deadline the milliseconds for which the heartbeat has waited
   */
  onOutage (failure: Failure, answers: number, deadline: number): void
  /** Called when the first connection, or a new one after a loss, is established. */
  onReturn (): void
}

export interface StatementsOptions {
  breaker: CircuitBreaker
  backends: Backends
  /** Replaces the connections of the pools; statements on the old ones have `seconds` to finish. */
  renew (seconds?: number): void
  /** Sends a statement on each pool, without passing the circuit breaker. */
  probe (): Promise<unknown>
  closing: AbortSignal
  /** Milliseconds until PostgreSQL cancels a statement. */
  statementTimeout: number
  log: Log
}

/**
 * Creates the handler for the heartbeat at the URL of statements: during an outage, waiting and new statements fail.
 */
export function failStatements (
  { breaker, backends, renew, probe, statementTimeout, closing, log }: StatementsOptions
): Outages {
  let [isChecking, isStalled] = [false, false]

  function expire (milliseconds: number): void {
    if (breaker.expire(milliseconds)) renew()
  }

  // Heartbeats are answered although statements are not. Finds out whether the statements are merely slow, or whether
  // their connections or PostgreSQL processes stall (docs/decisions/outages-and-failover.md).
  async function detectStall (query: (statement: string) => Promise<RowList<Row[]>>, timeoutMs: number): Promise<void> {
    const { answers } = breaker
    isChecking = true
    const areIdle = await backends.areIdle(query).finally(() => { isChecking = false })
    // Answers of statements may have arrived together with this answer. They are read in this turn of the event loop.
    await turn()
    if (!areIdle || isStalled || breaker.answers !== answers || breaker.longestWait < timeoutMs) return
    log.warn({ waited: Math.round(breaker.longestWait) }, 'The database answers heartbeats, but no statements')
    breaker.expire(0)
    void restore(timeoutMs)
  }

  // Replaces all connections until the new ones answer. If these do not answer either, new statements fail until they
  // do.
  async function restore (timeoutMs: number): Promise<void> {
    const noAnswer = () => new Error('the new connections do not answer')
    isStalled = true
    while (!closing.aborted) {
      renew(0)
      if (await inTime(probe(), timeoutMs, noAnswer).then(() => true, () => false)) break
      breaker.setClosed(false)
      await delay(RETRY_MS, undefined, { signal: closing, ref: false }).catch(() => {})
    }
    isStalled = false
    if (!closing.aborted) closeBreaker('The database answers statements again')
  }

  function closeBreaker (message: string): void {
    if (!breaker.closed) log.info(message)
    breaker.setClosed(true)
  }

  return {
    get answers () { return breaker.answers },
    get isWaiting () { return breaker.longestWait > 0 },

    onAnswer (query, timeoutMs) {
      expire(statementTimeout + GRACE_MS)
      if (!isChecking && breaker.longestWait >= timeoutMs) return detectStall(query, timeoutMs)
    },

    onOutage (err, answers, deadline) {
      // If other statements have been answered meanwhile, the database is available, and only those that have waited
      // for as long as the heartbeat fail.
      if (breaker.answers !== answers) {
        expire(deadline)
      } else if (breaker.closed) {
        log.warn({ err }, 'The database is unavailable')
        breaker.setClosed(false)
        renew(0)
      }
    },

    onReturn () {
      if (!isStalled) closeBreaker('The database is available again')
    },
  }
}

/**
 * Creates the handler for the heartbeat at a separate URL of notifications. It only logs the outage: statements
 * continue, and without notifications the node queries the database for ended sessions and new posts.
 */
export function reportOutages (log: Log): Outages {
  let isUnavailable = false
  return {
    answers: 0,
    isWaiting: false,
    onAnswer () {},

    onOutage (err) {
      if (!isUnavailable) log.warn({ err }, 'The notifications of the database are unavailable')
      isUnavailable = true
    },

    onReturn () {
      if (isUnavailable) log.info('The notifications of the database are available again')
      isUnavailable = false
    },
  }
}
