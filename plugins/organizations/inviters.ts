import type { Database, UserRow } from '../../db/tables/index.ts'
import { findUsers } from '../../db/users/users.ts'
import type { Actor } from '../../schema/options/policy.ts'
import type { Caller } from '../access/caller.ts'
import type { Claims } from '../access/claims.ts'
import type { AccessPolicy } from '../access/policy.ts'
import type { Core } from '../core.ts'

/** Somebody whose permissions are asked for. */
export type Asker = Pick<Caller, 'allows'>

/** A user who has invited others, with the host's claims of a token that the user would get. */
export interface Inviter { readonly user: UserRow, readonly claims: Actor['claims'] }

interface Dependencies extends Pick<Core, 'options'> {
  claims: Claims
  policy: Pick<AccessPolicy, 'allows'>
}

export type Inviters = ReturnType<typeof createInviters>

/** Finds users who have invited others, and asks the policy about them as they are now (contract 19.5). */
export function createInviters ({ options: { userFields }, claims, policy }: Dependencies) {
  return {
    /**
     * Returns a user, or null if there is none. Throws `InternalError` if the host's claims fail.
     * @param known the same user as read before a transaction, which the host's function must not keep waiting
     */
    async find (db: Database, id: string, known?: Inviter): Promise<Inviter | null> {
      const [user] = await findUsers(db, [id], userFields)
      return user ? { user, claims: known ? known.claims : await claims.of(user) } : null
    },

    /** Returns whose permissions are asked for. A user who is disabled has none. */
    askerOf ({ user, claims }: Inviter): Asker {
      // No token is left of the request that has invited, as of a request with an API key.
      const actor: Actor = {
        id: user.id,
        role: user.role,
        sessionId: null,
        keyId: null,
        actions: null,
        amr: [],
        authTime: 0,
        organization: null,
        claims,
      }
      return {
        allows: (action, resource, organization = null) =>
          !user.disabled && policy.allows({ ...actor, organization }, action, resource),
      }
    },
  }
}
