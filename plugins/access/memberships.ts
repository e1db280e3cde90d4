import type { Options } from '../../schema/options/options.ts'
import type { ActorOrganization } from '../../schema/options/policy.ts'
import { OrganizationNotFound } from '../../schema/organizations/organizations.ts'

type OrganizationOptions = Pick<Options, 'organizations'>

/** Returns whether there is the role of a membership. Without the option `organizations` there is none. */
export const isKnownRole = ({ organizations }: OrganizationOptions, { role }: ActorOrganization): boolean =>
  organizations?.roles.has(role) ?? false

/**
 * Returns the membership for which a token is signed or a key created, or null if no organisation was asked for. Throws
 * `OrganizationNotFound` if the user is no member, or has a role that there is not.
 * @param found the membership of the user in the organisation that was asked for
 */
export function requireMembership (
  options: OrganizationOptions, found: ActorOrganization | null, organizationId: string | undefined
): ActorOrganization | null {
  if (organizationId === undefined) return null
  if (!found || !isKnownRole(options, found)) throw new OrganizationNotFound()
  return found
}
