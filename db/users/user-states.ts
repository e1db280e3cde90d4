import { sql } from 'kysely'
import type { UserFilters } from '../../schema/users/user-list.ts'

// An index of db/migrations/0001.ts has this expression, so do not change it without a migration.

/**
 * The state of a user as a number, which has a bit for each thing that lists are filtered by. Lists of users of some
 * states are read from the index of states and ids.
 */
export const userState = sql<number>`((role = 'admin')::integer + 2 * (account_kind = 'service')::integer
  + 4 * disabled::integer + 8 * email_verified::integer + 16 * has_app::integer)`

/** Returns the states of the users that a query may find. */
export function statesOf (
  { role, kind, disabled, emailVerified, secondFactor }: UserFilters
): number[] {
  // A role that nobody has is not an error.
  if (role !== undefined && role !== 'admin' && role !== 'user') return []
  const bits = [role && role === 'admin', kind && kind === 'service', disabled, emailVerified, secondFactor]
  return bits.reduce<number[]>((states, bit, index) => states.flatMap((state) =>
    bit === undefined ? [state, state + 2 ** index] : [state + (bit ? 2 ** index : 0)]), [0])
}
