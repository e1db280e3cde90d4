import type { FastifyInstance } from 'fastify'
import type { Client } from '../../db/batching/batching.ts'
import { EVERYBODY, placeOf, type ListUsersQuery, type UserPage } from '../../db/users/list-users.ts'
import type { UserRow } from '../../db/tables/index.ts'
import type { Actor } from '../../schema/options/policy.ts'
import { InvalidInput } from '../../schema/http/errors.ts'
import { User } from '../../schema/users/users.ts'
import {
  decodeUserCursor, encodeUserCursor, filtersAccounts, readMembers, type UserFilters,
} from '../../schema/users/user-list.ts'

/** A list of users as it is requested. */
export interface UserListRequest extends UserFilters {
  readonly limit: number
  /** A cursor. */
  readonly after?: string | undefined
  /** Names of members, separated by commas. */
  readonly fields?: string | undefined
}

export interface ListedUsers {
  readonly page: UserPage
  /** The cursor of the next page, or null. */
  readonly next: string | null
  /** The members to show; undefined if all. */
  readonly members: readonly string[] | undefined
  cursorOf (user: UserRow): string
}

/**
 * Reads a page of users for a reader (contract 10.5). Addresses that the reader may not see are not found, and only
 * readers who may see all of them may sort by address (contract 11.1). Throws `InvalidToken` if the session of the
 * reader has ended meanwhile.
 * @param reader undefined for the host, which may see everything
 * @param onlyVersions whether only the ids and the versions of the users are read, besides what they are sorted by
 */
export async function listUsersFor (
  { usherUsers: users, usherAccess: { confirmReader, policy }, usherOptions: { userFields } }: FastifyInstance,
  { limit, after, fields, ...filters }: UserListRequest, reader: Actor | null | undefined, client?: Client,
  { onlyVersions = false } = {}
): Promise<ListedUsers> {
  const { role, email, q, kind, disabled, emailVerified, secondFactor, sort } = filters
  if (reader !== undefined && filtersAccounts(filters)) {
    policy.authorize(reader, 'users:filter')
  }
  if (sort && !sort.endsWith('createdAt') && [kind, disabled, emailVerified, secondFactor].some((one) => one !== undefined)) {
    throw new InvalidInput('sort must be createdAt or -createdAt with kind, disabled, emailVerified and secondFactor')
  }
  const mayRead = (ownerId?: string) => reader === undefined || policy.allows(reader, 'users:read-email', ownerId)
  if (sort?.endsWith('email') && !mayRead()) policy.authorize(reader!, 'users:read-email')
  const members = readMembers(fields, [...Object.keys(User.properties), ...userFields.map(({ name }) => name)])
  const query: ListUsersQuery = {
    role,
    email,
    q,
    kind,
    disabled,
    emailVerified,
    secondFactor,
    sort,
    limit,
    members: onlyVersions ? [] : members,
    after: after === undefined ? undefined : decodeUserCursor(after, filters),
  }
  if (email !== undefined || q !== undefined) {
    if (mayRead()) query.addresses = { of: EVERYBODY }
    else if (reader && mayRead(reader.id)) query.addresses = { of: reader.id }
  }
  const page = await users.list(query, client)
  // A large page waits while the node is busy.
  await confirmReader(reader, client)
  return {
    page,
    members,
    next: page.next && encodeUserCursor(page.next, filters),
    cursorOf: (user) => encodeUserCursor(placeOf(user, sort), filters),
  }
}
