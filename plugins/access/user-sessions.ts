import { isUuid } from '../../db/driver/postgres.ts'
import type { SessionRow } from '../../db/access/sessions.ts'
import type { Database } from '../../db/tables/index.ts'
import { findUsers } from '../../db/users/users.ts'
import { SessionNotFound } from '../../schema/access/sessions.ts'
import type { Audit } from '../audit/index.ts'
import type { UserRecords } from '../users/user-records.ts'
import type { Caller } from './caller.ts'
import type { Sessions } from './sessions.ts'

/** A session in a list. */
export type ListedSession = SessionRow & {
  /** Whether it is the session of the caller. */
  current: boolean
}

interface Dependencies {
  sessions: Sessions
  users: UserRecords
  audit: Audit
}

export type UserSessions = ReturnType<typeof createUserSessions>

/** Lists and ends the sessions of users (contract 4.4, 4.5, 11.4). */
export function createUserSessions ({ sessions, users, audit }: Dependencies) {
  // The sessions of others have an action of their own, because a host may have a rule for `sessions:list` that ignores
  // the owner.
  function authorizeListing (caller: Caller, userId: string): void {
    caller.authorize('sessions:list', { ownerId: userId })
    if (caller.actor?.id !== userId) caller.authorize('sessions:list-of-another', { ownerId: userId })
  }

  return {
    /**
     * Returns the sessions of a user, newest first. Throws `Unauthenticated`, `Forbidden`, `UserNotFound`,
     * `InvalidToken`.
     */
    async list (caller: Caller, userId: string): Promise<ListedSession[]> {
      authorizeListing(caller, userId)
      if (caller.actor?.id !== userId) await users.get(userId, caller.client)
      const rows = await sessions.list(userId)
      await caller.confirm()
      return rows.map((row) => ({ ...row, current: row.id === caller.actor?.sessionId }))
    },

    /**
     * Ends a session on every node. Throws `SessionNotFound`, also for a session that the caller may not end, and
     * `InvalidToken`. With `userId`, it throws `Unauthenticated` or `Forbidden` instead if the caller may not end
     * sessions of that user, and `UserNotFound`.
     *
     * @param userId the user whose session it must be
     */
    async end (caller: Caller, id: string, userId?: string): Promise<void> {
      if (userId !== undefined) {
        caller.authorize('sessions:end', { ownerId: userId })
        caller.authorizeOver(await users.get(userId, caller.client), 'sessions:end')
      }
      const ownerId = isUuid(id) ? await sessions.ownerOf(id) : undefined
      // The response for another user's session is the same as for one that does not exist.
      if (!ownerId || ownerId !== (userId ?? ownerId) || !caller.allows('sessions:end', { ownerId })) {
        throw new SessionNotFound()
      }
      // The role is read after the session was found: another role ends the sessions from before.
      if (caller.hasRoleOfHost && !caller.hasPowerOver(await users.get(ownerId, caller.client))) {
        throw new SessionNotFound()
      }
      await caller.confirm()
      await sessions.end({ id }, { ...audit.contextOf(caller), action: 'session.end' })
    },

    /**
     * Ends all sessions of a user on every node. Throws `Unauthenticated`, `Forbidden`, `UserNotFound`, `InvalidToken`.
     * @param but the id of the session that does not end, if any
     */
    async endAll (caller: Caller, userId: string, but?: string): Promise<void> {
      caller.authorize('sessions:end', { ownerId: userId })
      if (but === undefined) await users.get(userId, caller.client)
      const authorize = caller.hasRoleOfHost && (async (trx: Database) => {
        const [user] = await findUsers(trx, [userId])
        if (user) caller.authorizeOver(user, 'sessions:end')
      })
      await sessions.endAll(userId, but, audit.contextOf(caller), caller, authorize || undefined)
    },
  }
}
