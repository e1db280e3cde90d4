import type { KyselyPlugin, OperationNode, RootOperationNode } from 'kysely'
import type { Database } from '../tables/index.ts'

const marked = new WeakSet<OperationNode>()

const plugin: KyselyPlugin = {
  transformQuery ({ node }): RootOperationNode {
    const copy = { ...node }
    marked.add(copy)
    return copy
  },
  async transformResult ({ result }) {
    return result
  },
}

/**
 * Returns the database for statements that PostgreSQL plans anew each time, for those that join many rows of tables
 * that can grow fast. PostgreSQL keeps the plan of a prepared statement until it analyzes a table of the statement,
 * which it does once a minute at most. A plan that was made for a table with one row compares each row with each other
 * row, which takes most of a minute if a flood has added 100,000 rows meanwhile.
 */
export const replanned = (db: Database): Database => db.withPlugin(plugin)

/** Returns whether a statement is planned anew each time. */
export const isReplanned = (node: OperationNode): boolean => marked.has(node)
