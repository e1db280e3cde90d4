import { sql } from 'kysely'
import type { UserFilters } from '../../schema/users/user-list.ts'

// Indexes of db/migrations/ have these expressions, so do not change them without a migration.

/**
 * The state of a user as a number, which has a bit for each thing that lists are filtered by. Lists of users of some
 * states are read from the index of states and ids.
 */
export const userState = sql<number>`((role = 'admin')::integer + 2 * (account_kind = 'service')::integer
  + 4 * disabled::integer + 8 * email_verified::integer + 16 * has_app::integer)`

/** The condition of the index of the states of users with a role of the host, which are few. */
export const hasRoleOfHost = sql<boolean>`role not in ('admin', 'user')`

/** Returns whether a query asks for a role that users may have by an option of the host. */
export const asksForRoleOfHost = ({ role }: UserFilters): boolean =>
  role !== undefined && role !== 'admin' && role !== 'user'

/** Returns the states of the users that a query may find. Those of a role of the host have the bit of no admin. */
export function statesOf (
  { role, kind, disabled, emailVerified, secondFactor }: UserFilters
): number[] {
  const bits = [role && role === 'admin', kind && kind === 'service', disabled, emailVerified, secondFactor]
  return bits.reduce<number[]>((states, bit, index) => states.flatMap((state) =>
    bit === undefined ? [state, state + 2 ** index] : [state + (bit ? 2 ** index : 0)]), [0])
}
