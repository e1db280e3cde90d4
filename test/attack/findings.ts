/** A violated promise. */
export interface Violation {
  readonly kind: Kind
  readonly attack: string
  readonly detail: string
  /** The request that caused it, if known, shortened. */
  readonly request?: string | undefined
}

/** The kinds of violations, in the order of the report. */
export const kinds = {
  crash: 'crashes, unhandled rejections',
  'server-error': '5xx and internal errors, without load shedding',
  authorization: 'authorization bypasses',
  'wrongly-refused': 'permitted requests rejected for their token',
  smuggling: 'requests within requests that were executed',
  contract: 'responses against the contract',
  unanswered: 'requests without a response',
  'lost-write': 'acknowledged writes that are lost, undone endings of sessions',
  stall: 'stalls above the limit',
  memory: 'memory that is not flat',
  leftover: 'leftovers in the database, on disk, in open files',
  log: 'unexpected log lines above info, warnings of Node',
} as const
export type Kind = keyof typeof kinds

/** Ids of everything that the node has acknowledged. */
export interface Acknowledged {
  users: string[]
  posts: string[]
  uploads: string[]
  endedSessions: string[]
}

/** The results of one generator. */
export interface Counts {
  requests: number
  /** Responses by attack and status. */
  statuses: Record<string, Record<string, number>>
  violations: Violation[]
  /** The number of violations by kind. `violations` contains only the first ones. */
  counted: Partial<Record<Kind, number>>
  acknowledged: Acknowledged
}

const KEPT = 25
const REQUEST_CHARACTERS = 1500
const ACKNOWLEDGED = 50_000

/** Collects the results of a generator. */
export class Findings {
  readonly counts: Omit<Counts, 'acknowledged'> = { requests: 0, statuses: {}, violations: [], counted: {} }
  readonly #acknowledged: Record<keyof Acknowledged, Set<string>> = {
    users: new Set(), posts: new Set(), uploads: new Set(), endedSessions: new Set(),
  }

  count (attack: string, status: string | number): void {
    this.counts.requests++
    const statuses = (this.counts.statuses[attack] ??= {})
    statuses[status] = (statuses[status] ?? 0) + 1
  }

  violation (kind: Kind, attack: string, detail: string, request?: string): void {
    const { counted, violations } = this.counts
    counted[kind] = (counted[kind] ?? 0) + 1
    // Only the first violations of each attack are kept, so that one defect does not hide others.
    if (violations.filter((known) => known.kind === kind && known.attack === attack).length >= KEPT) return
    violations.push({ kind, attack, detail: detail.slice(0, 500), request: request?.slice(0, REQUEST_CHARACTERS) })
  }

  /** Records what the node has acknowledged. It is checked at the end. */
  acknowledge (what: keyof Acknowledged, id: string): void {
    const ids = this.#acknowledged[what]
    if (ids.size < ACKNOWLEDGED) ids.add(id)
  }

  /** Records that something acknowledged may be deleted, because a deletion is requested. */
  forget (what: keyof Acknowledged, id: string): void {
    this.#acknowledged[what].delete(id)
  }

  /** Returns the results. */
  summarize (): Counts {
    const { users, posts, uploads, endedSessions } = this.#acknowledged
    return {
      ...this.counts,
      acknowledged: { users: [...users], posts: [...posts], uploads: [...uploads], endedSessions: [...endedSessions] },
    }
  }
}
