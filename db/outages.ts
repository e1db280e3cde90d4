import type { Gate } from './gate.ts'
import type { Failure } from './sockets.ts'

// PostgreSQL would have given the statement up by then: its connection is dead, though nothing has said so.
const GRACE_MS = 1000

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
  /** A heartbeat was answered. */
  onAnswer (): void
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
  gate: Gate
  /** Of the pools. */
  renew (seconds?: number): void
  /** Milliseconds until PostgreSQL cancels a statement. */
  statementTimeout: number
  log: Log
}

/** For the heartbeat at the address of statements: during an outage, waiting and new statements fail. */
export function failStatements ({ gate, renew, statementTimeout, log }: StatementsOptions): Outages {
  function expire (milliseconds: number): void {
    if (gate.expire(milliseconds)) renew()
  }

  return {
    get answers () { return gate.answers },
    onAnswer () { expire(statementTimeout + GRACE_MS) },

    onOutage (err, answers, deadline) {
      // Where others have got answers meanwhile the database is there, though not for those that have waited as long.
      if (gate.answers !== answers) {
        expire(deadline)
      } else if (gate.open) {
        log.warn({ err }, 'The database is away')
        gate.set(false)
        renew(0)
      }
    },

    onReturn () {
      if (!gate.open) log.info('The database is back')
      gate.set(true)
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
