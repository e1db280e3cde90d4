import type { SessionVerdict } from './check-sessions.ts'
import type { Exchange } from './history.ts'
import { KINDS, type Fault } from './schedule.ts'

// The effect of a fault continues for a while after its end.
const AFTERMATH_MS = 1000

/**
 * Returns the figures of a run in milliseconds: by fault, how long requests took, and for how long tokens of ended
 * sessions were accepted.
 */
export function report (
  faults: readonly Fault[], exchanges: readonly Exchange[], { accepted, falseRejections }: SessionVerdict
) {
  const statuses = Map.groupBy(exchanges, ({ status }) => status)
  return {
    faults: Object.fromEntries(KINDS.map((kind) => [kind, faults.filter((fault) => fault.kind === kind).length])),
    requests: Object.fromEntries([...statuses].map(([status, { length }]) => [status, length])),
    longestTo503: round(Math.max(0, ...(statuses.get(503) ?? []).map((exchange) => durationOf(exchange, faults)))),
    longest: round(Math.max(0, ...exchanges.map((exchange) => durationOf(exchange, faults)))),
    recovery: Object.fromEntries(
      KINDS.map((kind) => [kind, recoveryAfter(faults.filter((fault) => fault.kind === kind), exchanges)])
    ),
    acceptedAfterEnd: Object.fromEntries((['none', ...KINDS] as const)
      .map((kind) => [kind, round(Math.max(0, ...accepted
        .filter(({ at, node }) =>
          kind === 'none' ? KINDS.every((kind) => !isActive(faults, kind, at, node)) : isActive(faults, kind, at, node))
        .map(({ milliseconds }) => milliseconds)))])),
    falseRejections,
  }
}

// Returns the duration of a request without the time for which its node was paused.
function durationOf ({ node, start, end }: Exchange, faults: readonly Fault[]): number {
  const paused = faults.filter((fault) => fault.kind === 'pauseNode' && fault.node === node)
    .reduce(
      (sum, fault) => sum + Math.max(0, Math.min(end, fault.at + fault.milliseconds) - Math.max(start, fault.at)), 0
    )
  return end - start - paused
}

// Returns the median and the longest time from the end of a fault to the next success of its node.
function recoveryAfter (faults: readonly Fault[], exchanges: readonly Exchange[]): { median: number, longest: number } {
  const successes = exchanges.filter(({ status }) => status >= 200 && status < 300)
    .sort((one, other) => one.end - other.end)
  const times = faults.map((fault) => {
    const over = fault.at + fault.milliseconds
    const next = successes.find(({ node, start }) => start >= over && (!('node' in fault) || fault.node === node))
    return next ? next.end - over : 0
  }).sort((one, other) => one - other)
  return { median: round(times[Math.floor(times.length / 2)] ?? 0), longest: round(times.at(-1) ?? 0) }
}

function isActive (faults: readonly Fault[], kind: Fault['kind'], at: number, node: number): boolean {
  return faults.some((fault) => fault.kind === kind && (!('node' in fault) || fault.node === node) &&
    fault.at <= at && at <= fault.at + fault.milliseconds + AFTERMATH_MS)
}

function round (milliseconds: number): number {
  return Math.round(milliseconds)
}
