import type { Deadlines } from '../../schema/options/deadlines.ts'

// Opening a connection takes one round trip for TCP, and up to seven more for TLS, the password and the first
// statement.
const ROUND_TRIPS = 8
// Applied with every answer. After one second of heartbeats, a slow answer has lost nearly all of its weight.
const DECAY = 0.9

/**
 * Measures how long the database takes to answer, and derives the deadlines of its connections from that, so that a
 * distant database or a busy machine is not mistaken for an outage. All values are in milliseconds. Until requests are
 * served, all of them are `databaseStart`: nobody waits, a machine that has just booted is busy, and a start that takes
 * longer is better than one that fails.
 */
export interface AnswerTime {
  /** Adds the measured time of one answer. */
  add (milliseconds: number): void
  /** Sets whether requests are served, which have to get a response within a second. */
  setServing (isServing: boolean): void
  /**
   * The time after which a database that does not answer counts as unavailable: `databaseAnswer` to
   * `databaseAnswerMax`.
   */
  readonly deadline: number
  /**
   * The time after which a connection that is not open yet counts as failed: `databaseConnect` to `databaseConnectMax`.
   */
  readonly connectDeadline: number
  /**
   * The time after which an unanswered statement, which may still be waiting for its connection, counts as stalled:
   * `databaseStall` to `databaseConnectMax`.
   */
  readonly stallDeadline: number
}

/**
 * Creates an answer time without measurements, while no requests are served. The deadlines of requests start at their
 * minimum.
 */
export function createAnswerTime (deadlines: Deadlines): AnswerTime {
  let longest = 0
  let isServing = false
  const within = (min: number, max: number, estimate: number) =>
    isServing ? Math.min(max, Math.max(min, estimate)) : deadlines.databaseStart
  const connecting = (min: number) => within(min, deadlines.databaseConnectMax, ROUND_TRIPS * longest)
  return {
    add (milliseconds) { longest = Math.max(milliseconds, longest * DECAY) },
    setServing (now) { isServing = now },
    get deadline () { return within(deadlines.databaseAnswer, deadlines.databaseAnswerMax, 2 * longest) },
    get connectDeadline () { return connecting(deadlines.databaseConnect) },
    get stallDeadline () { return connecting(deadlines.databaseStall) },
  }
}
