import { decodeCursor, encodeCursor } from '../../schema/cursor.ts'
import { ListArguments } from '../../schema/post.ts'
import { createCheck } from '../../schema/validator.ts'

const check = createCheck(ListArguments)

export interface PageArguments {
  role?: string | null | undefined
  first?: number | null | undefined
  after?: string | null | undefined
}

/** The arguments of a list, checked; null is as good as absent. Throws `InvalidInput`. */
export function readPage ({ role, first, after }: PageArguments): { role?: string, first: number, after?: string } {
  const page = { first: first ?? 50, ...role != null && { role }, ...after != null && { after: decodeCursor(after) } }
  check(page)
  return page
}

/**
 * A Relay connection: a page of rows and what is around it.
 *
 * @param list the rows after a cursor; one more than the page holds is asked for, to tell whether another follows
 */
export async function connect<Row extends { id: string }> (
  { first, after }: { first: number, after?: string },
  list: (page: { limit: number, after?: string }) => Promise<Row[]>
) {
  const rows = await list({ limit: first + 1, ...after !== undefined && { after } })
  const nodes = rows.slice(0, first)
  const edges = nodes.map((node) => ({ node, cursor: encodeCursor(node.id) }))
  return {
    nodes,
    edges,
    pageInfo: {
      hasNextPage: rows.length > first,
      // Newest first, from a cursor on: what it came from lies before.
      hasPreviousPage: after !== undefined,
      startCursor: edges.at(0)?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  }
}
