import type { Row, RowList } from 'postgres'

// Enough for any pool. The set may contain processes that have ended. When it is full, it is cleared and fills up
// again.
const REMEMBERED = 1000

/** The PostgreSQL processes (backends) that have answered statements of this node. */
export interface Backends {
  /** Adds the process that has answered a statement. */
  add (pid: number): void
  /** Removes all processes, because their connections are closed. */
  clear (): void
  /**
   * Returns whether all of these processes are idle. A process that waits for a lock is not idle. Returns false if
   * PostgreSQL knows none of the process numbers, which is so behind a pooler: its connections have numbers that
   * PostgreSQL does not know.
   *
   * @param query runs a statement on another connection
   */
  areIdle (query: (statement: string) => Promise<RowList<Row[]>>): Promise<boolean>
}

/** Creates an empty set of processes. */
export function createBackends (): Backends {
  const pids = new Set<number>()
  return {
    add (pid) {
      if (pids.size === REMEMBERED) pids.clear()
      pids.add(pid)
    },

    clear () { pids.clear() },

    async areIdle (query) {
      if (pids.size === 0) return false
      const [row] = await query(`
        select count(state)::int as known, count(*) filter (where state <> 'idle')::int as busy
        from pg_stat_activity where pid in (${[...pids].join()})`)
      return row!.known > 0 && row!.busy === 0
    },
  }
}
