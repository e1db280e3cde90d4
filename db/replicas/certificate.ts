import type { Snapshot } from './fences.ts'

/**
 * What a read on a standby may have shown. A standby shows a transaction when it has replayed its commit, which may be
 * before the primary does: that first waits for synchronous standbys, or its process does not get to run.
 */
export interface Shown {
  /** Transactions from this one on were not visible on the standby. */
  readonly xmax: number
  /** Transactions before `xmax` that were not visible either, as far as they were asked about. */
  readonly invisible: Set<number>
}

/**
 * Returns the transactions that the standby may have shown and that a snapshot of the primary does not show. If there
 * is none, no later read of the primary can be behind that of the standby. Returns undefined if the standby was ahead
 * in a way that only a later snapshot can tell.
 */
export function findUnconfirmed ({ xmax, invisible }: Shown, snapshot: Snapshot): number[] | undefined {
  if (xmax > snapshot.xmax) return undefined
  return snapshot.running.filter((xid) => xid < xmax && !invisible.has(xid))
}
