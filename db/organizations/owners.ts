import type { ExpressionBuilder } from 'kysely'
import { OWNER } from '../../schema/options/organizations.ts'
import { LastOwner } from '../../schema/organizations/organizations.ts'
import { storeEvent } from '../outbox/store.ts'
import type { Database, Tables } from '../tables/index.ts'

const MAX_NAMES = 10

/**
 * Throws `LastOwner` if an organisation, which is locked, has no owner who can log in. Call it after a change of its
 * members.
 */
export async function requireOwner (trx: Database, organizationId: string): Promise<void> {
  const { name, hasOwner } = await trx.selectFrom('organizations').where('id', '=', organizationId)
    .select(['name', hasOwnerBut(null)]).executeTakeFirstOrThrow()
  if (!hasOwner) throw new LastOwner(name)
}

// Locks the organisations of a user, who is locked, or those in which the user has a role. Returns their ids.
async function lockOrganizationsOf (trx: Database, userId: string, role?: string): Promise<string[]> {
  // In the order of the ids, so that two users cannot wait for each other.
  const locked = await trx.selectFrom('organizations').select('id')
    .where('id', 'in', ({ selectFrom }) => selectFrom('memberships').select('organization_id')
      .where('user_id', '=', userId).$if(role !== undefined, (query) => query.where('role', '=', role!)))
    .orderBy('id').forNoKeyUpdate().execute()
  return locked.map(({ id }) => id)
}

/**
 * Locks the organisations of which a user is an owner, who is about to be deleted or disabled and is locked. Throws
 * `LastOwner` if one of them has no other owner who can log in.
 */
export async function requireOtherOwners (trx: Database, userId: string): Promise<void> {
  const owned = await lockOrganizationsOf(trx, userId, OWNER)
  if (owned.length === 0) return
  // A separate statement, which sees what was committed while the first one waited for the locks.
  const rows = await trx.selectFrom('organizations').select(['name', hasOwnerBut(userId)])
    .where('id', 'in', owned).orderBy('id').execute()
  const names = rows.filter(({ hasOwner }) => !hasOwner).map(({ name }) => name)
  if (names.length > 0) throw new LastOwner(names.slice(0, MAX_NAMES).join(', '))
}

/**
 * Ends the memberships of a user, who is locked and about to be deleted. Returns their ids. Throws `LastOwner` if an
 * organisation would have no owner who can log in.
 */
export async function endMembershipsOf (trx: Database, userId: string, actorId: string | null): Promise<string[]> {
  // As every change of members does, so that events are stored in the order in which memberships end.
  await lockOrganizationsOf(trx, userId)
  await requireOtherOwners(trx, userId)
  const ended = await trx.deleteFrom('memberships').where('user_id', '=', userId)
    .returning(['id', 'organization_id as organizationId', 'role']).execute()
  for (const { id: membershipId, organizationId, role } of ended) {
    await storeEvent(trx, 'membership.deleted', organizationId, { organizationId, membershipId, userId, role, actorId })
  }
  return ended.map(({ id }) => id)
}

// A service user cannot log in. A person can, also one who lacks a second factor that is required, in order to add it.
const hasOwnerBut = (userId: string | null) => ({ exists, selectFrom }: ExpressionBuilder<Tables, 'organizations'>) =>
  exists(selectFrom('memberships').innerJoin('users', 'users.id', 'memberships.user_id').select('memberships.id')
    .whereRef('memberships.organization_id', '=', 'organizations.id').where('memberships.role', '=', OWNER)
    .where('users.account_kind', '=', 'person').where('users.disabled', '=', false)
    .$if(userId !== null, (query) => query.where('users.id', '<>', userId!)))
    .$castTo<boolean>().as('hasOwner')
