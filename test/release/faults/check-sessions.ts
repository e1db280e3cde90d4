import type { SessionHistory, TokenUse, Violation } from './history.ts'

/** How long a node may accept the token of a session after the response that ended it (contract 4). */
export const TOLERANCE_MS = 100

export interface SessionVerdict {
  readonly violations: readonly Violation[]
  /** How long after the 204 the latest accepted use of a token began, per session; negative if none did. */
  readonly accepted: readonly { readonly at: number, readonly milliseconds: number, readonly node: number }[]
  /** How often a live token was rejected. */
  readonly falseRejections: number
}

/**
 * Checks that live tokens are accepted, and that none is after its session has ended.
 * @param created the titles of all posts in the database: a write counts as accepted if it took effect, whatever was
 * answered
 */
export function checkSessions (sessions: readonly SessionHistory[], created: ReadonlySet<string>): SessionVerdict {
  const violations: Violation[] = []
  const accepted = []
  let falseRejections = 0
  for (const { id, ending, uses } of sessions) {
    const successes = uses.filter((use) => isAccepted(use, created))
    // A request without a response may have ended the session later, or never.
    const hasEnded = ending.status === 204 ? ending.end : Infinity
    for (const use of uses.filter(({ status, end }) => status === 401 && end < ending.start)) {
      falseRejections++
      violations.push({ rule: 'the token of a live session was rejected', evidence: { id, use, ending } })
    }
    for (const use of successes.filter(({ start }) => start > hasEnded + TOLERANCE_MS)) {
      violations.push({ rule: 'the token of an ended session was accepted', evidence: { id, use, ending } })
    }
    const firstRejection = Math.min(...uses.filter(({ status }) => status === 401).map(({ end }) => end))
    for (const use of successes.filter(({ start }) => start > firstRejection + TOLERANCE_MS)) {
      violations.push({ rule: 'a session that had ended was there again', evidence: { id, use, firstRejection } })
    }
    const last = successes.filter(({ start }) => start > hasEnded).sort((one, other) => one.start - other.start).at(-1)
    if (last) accepted.push({ at: last.start, milliseconds: last.start - hasEnded, node: last.node })
  }
  return { violations, accepted, falseRejections }
}

function isAccepted ({ kind, status, title }: TokenUse, created: ReadonlySet<string>): boolean {
  return kind === 'read' ? status === 200 : created.has(title!)
}
