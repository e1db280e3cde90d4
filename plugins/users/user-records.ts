import { batchLists, SLOW_LISTS_IN_FLIGHT, batchCalls, type Client } from '../../db/batching/batching.ts'
import { estimateRows } from '../../db/admin/counts.ts'
import type { UserRow } from '../../db/tables/index.ts'
import {
  findUsers, findUsersByEmail, findUserVersions, insertUsers, type UserCreation, type UserVersion,
} from '../../db/users/users.ts'
import { countUsers, listUsers, type ListUsersQuery, type UserPage } from '../../db/users/list-users.ts'
import { UserNotFound } from '../../schema/users/users.ts'
import type { Core } from '../core.ts'
import { createPacing, LARGE_PAGE } from './large-pages.ts'

const USERS_A_WRITE = 100

export type UserRecords = ReturnType<typeof createUserRecords>

/**
 * Reads and creates users, with statements that concurrent requests share (docs/speed.md, points 2 and 3). It asks
 * nobody whether the caller may see them: what a caller reads goes through `read-users.ts`.
 */
export function createUserRecords (
  { database: { db, reads }, telemetry: { batch, countItemsBeside }, options: { userFields, deadlines } }: Core
) {
  const timeoutMs = deadlines.batch
  const read = batchCalls(
    (ids: string[]) => findUsers(reads, ids, userFields), { timeoutMs, telemetry: batch('users.read') }
  )
  const readPage = (query: ListUsersQuery) => listUsers(reads, query, userFields)
  const list = batchLists(readPage, { timeoutMs, telemetry: batch('users.list') })
  // Lists do not wait for searches, of which some read many users, nor for large pages.
  const search = batchLists(readPage, { timeoutMs, telemetry: batch('users.search'), inFlight: SLOW_LISTS_IN_FLIGHT })
  const largePages = batch('users.list-large')
  const pace = createPacing(() => countItemsBeside(largePages))
  const listLarge = batchLists(async (query: ListUsersQuery) => {
    await pace()
    return readPage(query)
  }, { timeoutMs, telemetry: largePages })
  const readVersion = batchCalls(
    (ids: string[]) => findUserVersions(reads, ids), { timeoutMs, telemetry: batch('users.version') }
  )

  return {
    /** Returns a user, or undefined if the id is unknown or malformed. */
    read,
    /** Returns a user. Throws `UserNotFound` if the id is unknown or malformed. */
    async get (id: string, client?: Client): Promise<UserRow> {
      const user = await read(id, client)
      if (!user) throw new UserNotFound()
      return user
    },
    /**
     * Returns the version of a user, without reading the user. Throws `UserNotFound` if the id is unknown or malformed.
     */
    async versionOf (id: string, client?: Client): Promise<UserVersion> {
      const version = await readVersion(id, client)
      if (!version) throw new UserNotFound()
      return version
    },
    /**
     * Returns the user who has an address, regardless of case, or undefined if there is none. Logins and writes depend
     * on it, so the primary answers.
     */
    find: batchCalls(
      (emails: string[]) => findUsersByEmail(db, emails, userFields), { timeoutMs, telemetry: batch('users.find') }
    ),
    /** Returns a page of users, by default newest first. */
    list (query: ListUsersQuery, client?: Client): Promise<UserPage> {
      const read = query.q !== undefined ? search : query.limit > LARGE_PAGE ? listLarge : list
      return read(query, client)
    },
    /** Counts the users of a list without a search, up to `max`. */
    count: (query: Parameters<typeof countUsers>[1], max: number): Promise<number> => countUsers(reads, query, max),
    /** Returns about how many users there are, as PostgreSQL has estimated it last. */
    estimate: (): Promise<number> => estimateRows(reads, 'users'),
    /**
     * Creates a user. Resolves after the commit. Rejects with `EmailTaken`, `KeyTaken`, or `InvalidToken` if the client
     * may no longer act.
     */
    create: batchCalls((users: UserCreation[]) => insertUsers(db, users, userFields), {
      size: USERS_A_WRITE, timeoutMs, telemetry: batch('users.create'),
    }),
  }
}
