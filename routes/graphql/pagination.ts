import type { Page } from '../../db/page.ts'
import { decodeCursor } from '../../schema/cursor.ts'
import { ListArguments, USUAL_PAGE } from '../../schema/post.ts'
import { createParser } from '../../schema/validator.ts'

const parse = createParser(ListArguments)

export interface PageArguments {
  role?: string | null | undefined
  first?: number | null | undefined
  after?: string | null | undefined
}

/** Returns the validated arguments of a list. Null is treated like an absent argument. Throws `InvalidInput`. */
export function readPage ({ role, first, after }: PageArguments, decode = decodeCursor): { role?: string, first: number, after?: string } {
  const cursor = after == null ? {} : { after: decode(after) }
  return { ...parse({ first: first ?? USUAL_PAGE, ...role != null && { role } }), ...cursor }
}

/** Returns a page of rows, newest first, as a Relay connection. `after` is the argument that the page was requested with. */
export function toConnection<Row> ({ rows, next }: Page<Row>, after: string | undefined, cursorOf: (row: Row) => string) {
  const edges = rows.map((node) => ({ node, cursor: cursorOf(node) }))
  return {
    nodes: [...rows],
    edges,
    pageInfo: {
      hasNextPage: next !== null,
      // The row of the cursor `after` is on an earlier page.
      hasPreviousPage: after !== undefined,
      startCursor: edges.at(0)?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  }
}
