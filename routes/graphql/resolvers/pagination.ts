import { Type } from '@sinclair/typebox'
import type { Page } from '../../../db/tables/page.ts'
import type { UserListRequest } from '../../../plugins/users/read-users.ts'
import { decodeCursor } from '../../../schema/http/cursor.ts'
import { ListMembers } from '../../../schema/organizations/organizations.ts'
import { ListArguments, PostSearch, USUAL_PAGE } from '../../../schema/posts/post.ts'
import { ListUsers, userFilters, type UserFilters } from '../../../schema/users/user-list.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { roleOfGraphqlName } from '../../../schema/options/roles.ts'

const parse = createParser(ListArguments)

export interface PageArguments {
  first?: number | null | undefined
  after?: string | null | undefined
}

/** Returns the validated arguments of a list. Null is treated like an absent argument. Throws `InvalidInput`. */
export function readPage ({ first, after }: PageArguments, decode = decodeCursor): { first: number, after?: string } {
  const cursor = after == null ? {} : { after: decode(after) }
  return { ...parse({ first: first ?? USUAL_PAGE }), ...cursor }
}

const parseMemberFilters = createParser(Type.Pick(ListMembers, ['role', 'q']))

/** Returns the validated filters of `members`. Null is treated like an absent argument. Throws `InvalidInput`. */
export function readMemberFilters (
  { role, q }: { role?: string | null | undefined, q?: string | null | undefined }
): { role?: string, q?: string } {
  return parseMemberFilters({ ...role != null && { role }, ...q != null && { q } })
}

const parsePostSearch = createParser(Type.Object({ q: Type.Optional(PostSearch) }))

/** Returns the validated search of `posts`. Null is treated like an absent argument. Throws `InvalidInput`. */
export function readPostSearch ({ q }: { q?: string | null | undefined }): { q?: string | undefined } {
  return parsePostSearch(q == null ? {} : { q })
}

const parseUsers = createParser(
  Type.Object({ ...ListArguments.properties, ...userFilters, after: ListUsers.properties.after })
)

/** Returns the validated arguments of `users`. Null is treated like an absent argument. Throws `InvalidInput`. */
export function readUsersPage (
  args: PageArguments & { [Name in keyof UserFilters]?: string | boolean | null | undefined }
): UserListRequest {
  const given = Object.fromEntries(
    Object.entries({ ...args, first: args.first ?? USUAL_PAGE }).filter(([, value]) => value != null)
  )
  const { first: limit, role, ...query } = parseUsers(given)
  return { limit, ...query, ...role !== undefined && { role: roleOfGraphqlName(role) } }
}

/**
 * Returns a page of rows as a Relay connection.
 * @param page its rows, and the cursor of the next page or null
 * @param after the argument that the page was requested with
 */
export function toConnection<Row> (
  { rows, next }: Pick<Page<Row>, 'rows' | 'next'>, after: string | undefined, cursorOf: (row: Row) => string
) {
  const edges = rows.map((node) => ({ node, cursor: cursorOf(node) }))
  return {
    nodes: [...rows],
    edges,
    pageInfo: {
      hasNextPage: next !== null,
      // The row of the cursor `after` is on an earlier page.
      hasPreviousPage: after !== undefined,
      startCursor: edges.at(0)?.cursor ?? null,
      // A search may stop after the last user that it has found.
      endCursor: next ?? edges.at(-1)?.cursor ?? null,
    },
  }
}
