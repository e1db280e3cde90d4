import { expressionBuilder, sql } from 'kysely'
import type { ActorOrganization } from '../../schema/options/policy.ts'
import { isUuid } from '../driver/postgres.ts'
import type { Database, Tables } from '../tables/index.ts'

/** A membership, as an actor has it. The driver reads JSON as objects. */
export const asOrganization = sql<ActorOrganization>`json_build_object(
  'id', memberships.organization_id, 'role', memberships.role, 'membershipId', memberships.id
)`

/**
 * Returns an expression of a statement that reads `users`: the membership of the user in an organisation, or null.
 */
export const membershipIn = (organizationId: string | undefined) =>
  expressionBuilder<Tables, 'users'>().selectFrom('memberships').select(asOrganization.as('organization'))
    .whereRef('memberships.user_id', '=', 'users.id')
    .where('memberships.organization_id', '=', isUuid(organizationId ?? '') ? organizationId! : null)

/** Returns the membership of a user, which does not end until the transaction ends, or undefined. */
export async function holdMembership (
  trx: Database, { userId, organizationId }: { userId: string, organizationId: string }
): Promise<ActorOrganization | undefined> {
  if (!isUuid(organizationId)) return undefined
  const row = await trx.selectFrom('memberships').select(asOrganization.as('organization'))
    .where('user_id', '=', userId).where('organization_id', '=', organizationId).forKeyShare().executeTakeFirst()
  return row?.organization
}
