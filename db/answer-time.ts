// Contract 1.10: requests are answered within a second of the database's disappearance.
const LEAST_MS = 400
const MOST_MS = 900
// A connection takes TCP's round trip, and up to seven for TLS, the password and the first statement.
const ROUND_TRIPS = 8
const LEAST_CONNECT_MS = 1000
const MOST_CONNECT_MS = 5000
// For each answer. A second of heartbeats at their usual pace forgets a slow answer.
const DECAY = 0.9

/**
 * How long the database takes to answer lately, and how long it is waited for because of that. A distant one, or a machine
 * that is busy, must not look like one that is away. All in milliseconds.
 */
export interface AnswerTime {
  /** Takes the time of an answer into account. */
  add (milliseconds: number): void
  /** Until a database that does not answer counts as away: 400 to 900. */
  readonly deadline: number
  /** Until a connection that is not open counts as failed: 1000 to 5000. */
  readonly connectDeadline: number
}

export function createAnswerTime (): AnswerTime {
  let longest = 0
  return {
    add (milliseconds) { longest = Math.max(milliseconds, longest * DECAY) },
    get deadline () { return Math.min(MOST_MS, Math.max(LEAST_MS, 2 * longest)) },
    get connectDeadline () { return Math.min(MOST_CONNECT_MS, Math.max(LEAST_CONNECT_MS, ROUND_TRIPS * longest)) },
  }
}
