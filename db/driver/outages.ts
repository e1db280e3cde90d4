import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import type { Row, RowList } from 'postgres'
import type { Backends } from './backends.ts'
import type { CircuitBreaker } from './circuit-breaker.ts'
import type { Failure } from './sockets.ts'

// PostgreSQL would have given the statement up by then: its connection is dead, though nothing has said so.
const GRACE_MS = 1000
const RETRY_MS = 100

/** Where outages, and faults of connections, are logged. */
export interface Log {
  warn (details: object, message: string): void
  info (message: string): void
  error (details: object, message: string): void
}

/** What is done about the outages that a heartbeat detects. */
export interface Outages {
  /** How many answers statements have got so far. */
  readonly answers: number
  /**
   * A heartbeat was answered.
   * @param ask runs a statement on the connection of heartbeats
   * @param patience milliseconds after which statements that are not answered are suspicious
   */
  onAnswer (ask: (statement: string) => Promise<RowList<Row[]>>, patience: number): void | Promise<void>
  /**
   * The database does not answer, or cannot be connected to.
   * @param answers how many answers statements had got when it stopped answering
   * @param deadline milliseconds that were waited for it
   */
  onOutage (failure: Failure, answers: number, deadline: number): void
  /** There is a connection again, or the first one. */
  onReturn (): void
}

export interface StatementsOptions {
  breaker: CircuitBreaker
  backends: Backends
  /** Of the pools. */
  renew (seconds?: number): void
  /** Sends a statement on the pools, past the circuit breaker. */
  probe (): Promise<unknown>
  closing: AbortSignal
  /** Milliseconds until PostgreSQL cancels a statement. */
  statementTimeout: number
  log: Log
}

/** For the heartbeat at the address of statements: during an outage, waiting and new statements fail. */
export function failStatements ({ breaker, backends, renew, probe, statementTimeout, closing, log }: StatementsOptions): Outages {
  let [isAsking, isStalled] = [false, false]

  function expire (milliseconds: number): void {
    if (breaker.expire(milliseconds)) renew()
  }

  // Heartbeats are answered, so it is the connections of statements that stall, or the processes behind them.
  async function findStall (ask: (statement: string) => Promise<RowList<Row[]>>, patience: number): Promise<void> {
    const { answers } = breaker
    isAsking = true
    const areIdle = await backends.areIdle(ask).finally(() => { isAsking = false })
    // An answer that arrived together with this one is read before this continues.
    await turn()
    if (!areIdle || isStalled || breaker.answers !== answers || breaker.longestWait < patience) return
    log.warn({ waited: Math.round(breaker.longestWait) }, 'The database is there, but does not answer statements')
    breaker.expire(0)
    void restore(patience)
  }

  // Replaces all connections until the new ones answer. If they do not either, new statements fail meanwhile.
  async function restore (patience: number): Promise<void> {
    const options = { signal: closing, ref: false }
    isStalled = true
    while (!closing.aborted) {
      renew(0)
      const answered = Promise.race([probe().then(() => true), delay(patience, false, options)])
      if (await answered.catch(() => false)) break
      breaker.setClosed(false)
      await delay(RETRY_MS, undefined, options).catch(() => {})
    }
    isStalled = false
    if (!closing.aborted) open('The database answers statements again')
  }

  function open (message: string): void {
    if (!breaker.closed) log.info(message)
    breaker.setClosed(true)
  }

  return {
    get answers () { return breaker.answers },

    onAnswer (ask, patience) {
      expire(statementTimeout + GRACE_MS)
      if (!isAsking && breaker.longestWait >= patience) return findStall(ask, patience)
    },

    onOutage (err, answers, deadline) {
      // Where others have got answers meanwhile the database is there, though not for those that have waited as long.
      if (breaker.answers !== answers) {
        expire(deadline)
      } else if (breaker.closed) {
        log.warn({ err }, 'The database is away')
        breaker.setClosed(false)
        renew(0)
      }
    },

    onReturn () {
      if (!isStalled) open('The database is back')
    },
  }
}

/** For the heartbeat at an address of notifications only: logs the outage. Statements continue, and replace what is not notified. */
export function reportOutages (log: Log): Outages {
  let isAway = false
  return {
    answers: 0,
    onAnswer () {},

    onOutage (err) {
      if (!isAway) log.warn({ err }, 'The notifications of the database are away')
      isAway = true
    },

    onReturn () {
      if (isAway) log.info('The notifications of the database are back')
      isAway = false
    },
  }
}
