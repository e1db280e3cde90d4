import type { Row, RowList } from 'postgres'

// Enough for any pool. Processes that have ended are forgotten with the others.
const REMEMBERED = 1000

/** The PostgreSQL processes that have answered statements of this node. */
export interface Backends {
  /** Remembers the process that an answer came from. */
  add (pid: number): void
  /** Forgets all of them, because their connections are closed. */
  clear (): void
  /**
   * Returns whether none of them has anything to do. A process that waits for a lock has. Returns false if PostgreSQL does not
   * tell, as behind a pooler, whose connections have numbers of their own.
   *
   * @param ask runs a statement on another connection
   */
  areIdle (ask: (statement: string) => Promise<RowList<Row[]>>): Promise<boolean>
}

export function createBackends (): Backends {
  const pids = new Set<number>()
  return {
    add (pid) {
      if (pids.size === REMEMBERED) pids.clear()
      pids.add(pid)
    },

    clear () { pids.clear() },

    async areIdle (ask) {
      if (pids.size === 0) return false
      const [row] = await ask(`
        select count(state)::int as known, count(*) filter (where state <> 'idle')::int as busy
        from pg_stat_activity where pid in (${[...pids].join()})`)
      return row!.known > 0 && row!.busy === 0
    },
  }
}
