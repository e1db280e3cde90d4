import { Random } from '../../attack/random.ts'

/** A connection between a node and the database. */
export type Link = 'statements' | 'notifications'

/** One fault of a schedule. Times are milliseconds since the start of the run. */
export type Fault = { readonly at: number, readonly milliseconds: number } & (
  | { readonly kind: 'pauseNode', readonly node: number }
  | { readonly kind: 'stopBackends', readonly count: number }
  | {
    readonly kind: 'pauseLink' | 'cutLink' | 'halfOpenLink' | 'refuseLink', readonly node: number, readonly link: Link
  }
  | {
    readonly kind: 'delayReplies' | 'delayRequests'
    readonly node: number
    readonly link: Link
    readonly delayMs: number
  }
  | { readonly kind: 'setNodeClock', readonly node: number, readonly offsetSeconds: number }
  | { readonly kind: 'setDatabaseClockForward', readonly seconds: number }
  | { readonly kind: 'setDatabaseClockBack', readonly seconds: number }
)

export const KINDS = [
  'pauseNode', 'stopBackends', 'pauseLink', 'cutLink', 'halfOpenLink', 'refuseLink', 'delayReplies', 'delayRequests',
  'setNodeClock', 'setDatabaseClockForward', 'setDatabaseClockBack',
] as const satisfies readonly Fault['kind'][]

const LONGEST_GAP_MS = 1500
const LONGEST_FAULT_MS = 3500
const LONGEST_DELAY_MS = 400
const NODE_CLOCK_SECONDS = 3600
// Together less than the minute by which the clock of a database may be behind (`plugins/access/tokens.ts`).
const DATABASE_CLOCK_SECONDS = 5
// A process notices within a second and a half that its clock was set.
const CALM_MS = 3000
const MOST_BACKENDS = 12
// The first and the last seconds of a run have no faults.
const MARGIN_MS = 2000

/**
 * Returns the faults of a run, ordered by start time. The same seed always yields the same schedule. Two faults of the
 * same target (a node's process, a link, a clock, the backends) never overlap, but faults of different targets do.
 * PostgreSQL's clock is repeatedly set forward. It is set back only at the end, when no statement is delayed, because
 * rejecting a late write depends on this clock.
 */
export function createSchedule (seed: number, milliseconds: number, nodes: number): Fault[] {
  const random = new Random(seed)
  const faults: Fault[] = []
  const busyUntil = new Map<string, number>()
  for (let at = MARGIN_MS; ; at += 100 + random.below(LONGEST_GAP_MS)) {
    const fault = createFault(random, at, nodes)
    if (at > milliseconds - MARGIN_MS - LONGEST_FAULT_MS - 2 * CALM_MS) break
    const target = targetOf(fault)
    if ((busyUntil.get(target) ?? 0) >= at) continue
    busyUntil.set(target, at + fault.milliseconds)
    faults.push(fault)
  }
  const seconds = faults.reduce((sum, fault) => sum + (fault.kind === 'setDatabaseClockForward' ? fault.seconds : 0), 0)
  return [...faults, { at: milliseconds - MARGIN_MS - CALM_MS, milliseconds: 0, kind: 'setDatabaseClockBack', seconds }]
}

function createFault (random: Random, at: number, nodes: number): Fault {
  const node = random.below(nodes)
  const milliseconds = 100 + random.below(LONGEST_FAULT_MS - 100)
  const link = random.pick(['statements', 'notifications'] as const)
  const kind = random.pick(KINDS.filter((kind) => kind !== 'setDatabaseClockBack'))
  switch (kind) {
    case 'pauseNode': return { at, milliseconds, kind, node }
    case 'stopBackends': return { at, milliseconds, kind, count: 1 + random.below(MOST_BACKENDS) }
    case 'cutLink':
    case 'halfOpenLink': return { at, milliseconds: 0, kind, node, link }
    case 'pauseLink':
    case 'refuseLink': return { at, milliseconds, kind, node, link }
    case 'delayReplies':
    case 'delayRequests':
      return { at, milliseconds, kind, node, link, delayMs: 20 + random.below(LONGEST_DELAY_MS - 20) }
    case 'setNodeClock':
      return { at, milliseconds, kind, node, offsetSeconds: random.below(2 * NODE_CLOCK_SECONDS) - NODE_CLOCK_SECONDS }
    case 'setDatabaseClockForward': return { at, milliseconds: 0, kind, seconds: random.below(DATABASE_CLOCK_SECONDS) }
  }
}

function targetOf (fault: Fault): string {
  switch (fault.kind) {
    case 'pauseNode': return `node ${fault.node}`
    case 'setNodeClock': return `clock of node ${fault.node}`
    case 'stopBackends':
    case 'setDatabaseClockForward':
    case 'setDatabaseClockBack': return fault.kind
    default: return `${fault.link} of node ${fault.node}`
  }
}
