import { mayGrant, organizationActions, type Organizations } from '../../../schema/options/organizations.ts'

/**
 * Returns, as JSON, what the page of organisations offers to each role: what it may do in its organisation, and which
 * roles it may give. The service decides.
 */
export function describeRoles (organizations: Organizations): string {
  const roles = [...organizations.roles]
  return JSON.stringify(roles.map(([role, actions]) => [role, {
    may: organizationActions.filter((action) => actions.has(action)),
    gives: roles.flatMap(([given]) => mayGrant(organizations, role, given) ? [given] : []),
  }]))
}
