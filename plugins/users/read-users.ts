import { MAX_COUNTED, type RowCount } from '../../db/admin/counts.ts'
import { EVERYBODY, placeOf, type ListUsersQuery, type UserPage } from '../../db/users/list-users.ts'
import type { UserVersion } from '../../db/users/users.ts'
import type { UserRow } from '../../db/tables/index.ts'
import { InvalidInput } from '../../schema/http/errors.ts'
import { User } from '../../schema/users/users.ts'
import {
  decodeUserCursor, encodeUserCursor, filtersAccounts, readMembers, type UserFilters,
} from '../../schema/users/user-list.ts'
import type { Caller } from '../access/caller.ts'
import type { Core } from '../core.ts'
import type { UserRecords } from './user-records.ts'

// Those of a filter are counted in each of the states that it allows.
const MAX_FILTERED = 1000

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

interface Dependencies extends Pick<Core, 'options'> {
  records: UserRecords
}

/**
 * Creates the reads of users that the policy permits, for REST, GraphQL, the console and the host. They return whole
 * rows, of which `caller.viewOf` shows what the caller may see. All throw `Unauthenticated` or `Forbidden`, and
 * `InvalidToken` if the session of the caller has ended meanwhile.
 */
export function createUserReads ({ records, options: { userFields } }: Dependencies) {
  const allMembers = [...Object.keys(User.properties), ...userFields.map(({ name }) => name)]

  return {
    /** Returns a user. Throws `UserNotFound`, also for a malformed id. */
    async get (caller: Caller, id: string): Promise<UserRow> {
      caller.authorize('users:read', { ownerId: id.toLowerCase() })
      const user = await records.get(id, caller.client)
      await caller.confirm()
      return user
    },

    /** Returns the version of a user, without reading the user. Throws `UserNotFound`. */
    async versionOf (caller: Caller, id: string): Promise<UserVersion> {
      caller.authorize('users:read', { ownerId: id.toLowerCase() })
      const version = await records.versionOf(id, caller.client)
      await caller.confirm()
      return version
    },

    /** Returns the user who is the actor, or undefined without an actor, or if the user was deleted. */
    async getOwn (caller: Caller): Promise<UserRow | undefined> {
      if (!caller.actor) return undefined
      const user = await records.read(caller.actor.id, caller.client)
      await caller.confirm()
      return user
    },

    /** Returns the user who has an address, regardless of case, or undefined, also if the caller may not see it. */
    async find (caller: Caller, email: string): Promise<UserRow | undefined> {
      const user = await records.find(email, caller.client)
      const actions = ['users:read', 'users:read-email'] as const
      const isVisible = user && actions.every((action) => caller.allows(action, { ownerId: user.id }))
      await caller.confirm()
      return isVisible ? user : undefined
    },

    /**
     * Returns how many users a list without a search has. Above 10,000, it is what PostgreSQL has estimated, and of a
     * filter, above 1,000, that number: there are more.
     */
    async count (caller: Caller, filters: Omit<UserFilters, 'q' | 'email' | 'sort'>): Promise<RowCount> {
      caller.authorize('users:list')
      if (filtersAccounts(filters)) caller.authorize('users:filter')
      const { role, kind, disabled, emailVerified, secondFactor } = filters
      const isAll = [role, kind, disabled, emailVerified, secondFactor].every((one) => one === undefined)
      const max = isAll ? MAX_COUNTED : MAX_FILTERED
      const found = await records.count({ role, kind, disabled, emailVerified, secondFactor }, max + 1)
      await caller.confirm()
      if (found <= max) return { count: found, isExact: true }
      return { count: isAll ? Math.max(found, await records.estimate()) : max, isExact: false }
    },

    /**
     * Returns a page of users (contract 10.5). Addresses that the caller may not see are not found, and only callers
     * who may see all of them may sort by address (contract 11.1).
     * @param options.onlyVersions whether only the ids and the versions of the users are read, besides what they are
     * sorted by
     */
    async list (
      caller: Caller, { limit, after, fields, ...filters }: UserListRequest, { onlyVersions = false } = {}
    ): Promise<ListedUsers> {
      const { role, email, q, kind, disabled, emailVerified, secondFactor, sort } = filters
      caller.authorize('users:list')
      if (filtersAccounts(filters)) caller.authorize('users:filter')
      if (sort && !sort.endsWith('createdAt') && [kind, disabled, emailVerified, secondFactor].some((one) => one !== undefined)) {
        throw new InvalidInput('sort must be createdAt or -createdAt with kind, disabled, emailVerified and secondFactor')
      }
      if (sort?.endsWith('email')) caller.authorize('users:read-email')
      const members = readMembers(fields, allMembers)
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
        const ownId = caller.actor?.id
        if (caller.allows('users:read-email')) query.addresses = { of: EVERYBODY }
        else if (ownId && caller.allows('users:read-email', { ownerId: ownId })) query.addresses = { of: ownId }
      }
      const page = await records.list(query, caller.client)
      // A large page waits while the node is busy.
      await caller.confirm()
      return {
        page,
        members,
        next: page.next && encodeUserCursor(page.next, filters),
        cursorOf: (user) => encodeUserCursor(placeOf(user, sort), filters),
      }
    },
  }
}
