import { sql } from 'kysely'
import { PROGRAM } from '../../schema/runtime/program.ts'
import { namesOfRoles, type Roles } from '../../schema/options/roles.ts'
import { StartError } from '../driver/start-errors.ts'
import type { Database } from '../tables/index.ts'
import { hasRoleOfHost } from './user-states.ts'

/** A role that users have and the options do not. */
export interface UnknownRole { role: string, users: number }

/** Returns the roles that users have and the options do not, from an index of those who have a role of the host. */
export async function listUnknownRoles (db: Database, roles: Roles): Promise<UnknownRole[]> {
  // Without parameters, so that a start sends it along with others.
  return db.selectFrom('users').select(['role', sql<number>`count(*)::integer`.as('users')])
    .where(hasRoleOfHost)
    .where(sql<boolean>`role not in (${sql.join(namesOfRoles(roles).map((name) => sql.lit(name)))})`)
    .groupBy('role').orderBy('role').execute()
}

/** Returns the error of a start without roles that users have (contract 20.1). */
export function explainUnknownRoles (unknown: readonly UnknownRole[]): StartError {
  const found = unknown.map(({ role, users }) => `${users} ${users === 1 ? 'user has' : 'users have'} the role ${role}`).join(' and ')
  const commands = unknown.map(({ role }) => `"${PROGRAM} users set-role --from ${role} --to user"`).join(' and ')
  return new StartError(`${found}, which the option roles (setting ROLES) does not have: add it again, or move them with ${commands}`)
}
