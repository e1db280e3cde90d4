import type { MemberRow, OrganizationRow } from '../../../db/organizations/organizations.ts'
import type { OrganizationOperations, ShownMember } from '../../../plugins/organizations/organizations.ts'
import type { Options } from '../../../schema/options/options.ts'
import type { Organizations } from '../../../schema/options/organizations.ts'
import { PROGRAM } from '../../../schema/runtime/program.ts'
import type { Shell } from '../../terminal/shell.ts'
import { withService, type ServiceContext } from '../with-service.ts'

/** What a command on organisations gets. */
export interface OrganizationContext extends ServiceContext { readonly organizations: OrganizationOperations }

/** Runs the work of a command on organisations. Throws an `Error` with a sentence, also if there are none. */
export function withOrganizations<Result> (
  shell: Shell, work: (context: OrganizationContext) => Promise<Result>
): Promise<Result> {
  return withService(shell, async (context) => {
    requireOrganizations(context.app.usherOptions)
    return work({ ...context, organizations: context.app.usherOrganizations.operations })
  })
}

/** Returns the option `organizations`. Throws an `Error` with a sentence if it is not set. */
export function requireOrganizations ({ organizations }: Pick<Options, 'organizations'>): Organizations {
  if (organizations) return organizations
  throw new Error(`There are no organisations: set ORGANIZATIONS to true (${PROGRAM} config shows what is set).`)
}

/** Returns an organisation as commands show it to programs. */
export function showOrganization ({ rowVersion, ...organization }: OrganizationRow): Omit<OrganizationRow, 'rowVersion'> {
  return organization
}

/** The shape of an organisation, for `--help`. */
export const ORGANIZATION = '{ id, name, slug, createdAt, updatedAt }'

/** The shape of a member, for `--help`. */
export const MEMBER = '{ id, userId, name, email, role, disabled, createdAt }'

const PAGE = 1000

/** Returns the members of an organisation, or those with a role. */
export async function listAllMembers (
  { organizations, caller }: OrganizationContext, id: string, role?: MemberRow['role']
): Promise<ShownMember[]> {
  const members: ShownMember[] = []
  for (let after: string | undefined; ;) {
    const { rows, next } = await organizations.listMembers(caller, id, { role, limit: PAGE, after })
    members.push(...rows)
    if (next === null) return members
    after = next
  }
}
