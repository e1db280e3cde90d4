// While no requests are served. A machine that has just booted is busy with many programs that start.
const PATIENT_MS = 5000
// The bounds keep contract 1.10: requests get a response within one second of the database becoming unavailable.
const LEAST_MS = 600
const MOST_MS = 900
// Opening a connection takes one round trip for TCP, and up to seven more for TLS, the password and the first statement.
const ROUND_TRIPS = 8
const LEAST_STALL_MS = 700
const LEAST_CONNECT_MS = 1000
const MOST_CONNECT_MS = 5000
// Applied with every answer. After one second of heartbeats, a slow answer has lost nearly all of its weight.
const DECAY = 0.9

/**
 * Measures how long the database takes to answer, and derives the deadlines of its connections from that, so that a distant
 * database or a busy machine is not mistaken for an outage. All values are in milliseconds. Until requests are
 * served, all deadlines are 5000, because nobody waits, and a start that takes longer is better than one that fails.
 */
export interface AnswerTime {
  /** Adds the measured time of one answer. */
  add (milliseconds: number): void
  /** Sets whether requests are served, which have to get a response within a second. */
  setServing (isServing: boolean): void
  /** The time after which a database that does not answer counts as unavailable: 600 to 900. */
  readonly deadline: number
  /** The time after which a connection that is not open yet counts as failed: 1000 to 5000. */
  readonly connectDeadline: number
  /** The time after which an unanswered statement, which may still be waiting for its connection, counts as stalled: 700 to 5000. */
  readonly stallDeadline: number
}

/** Creates an answer time without measurements, while no requests are served. The deadlines of requests start at their minimum. */
export function createAnswerTime (): AnswerTime {
  let longest = 0
  let isServing = false
  const within = (least: number, most: number, estimate: number) => isServing ? Math.min(most, Math.max(least, estimate)) : PATIENT_MS
  const connecting = (least: number) => within(least, MOST_CONNECT_MS, ROUND_TRIPS * longest)
  return {
    add (milliseconds) { longest = Math.max(milliseconds, longest * DECAY) },
    setServing (now) { isServing = now },
    get deadline () { return within(LEAST_MS, MOST_MS, 2 * longest) },
    get connectDeadline () { return connecting(LEAST_CONNECT_MS) },
    get stallDeadline () { return connecting(LEAST_STALL_MS) },
  }
}
