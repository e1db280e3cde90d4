import { roles as ownRoles } from '../users/members.ts'

/** The roles of the service that a host adds, with the actions of each (contract 20.1). */
export type Roles = ReadonlyMap<string, ReadonlySet<string>>

export const noRoles: Roles = new Map()

const MAX_ROLES = 20
const NAME = /^[a-z][a-z0-9-]{0,39}$/
// No value of an enum of GraphQL may have these names.
const notInGraphql: readonly string[] = ['true', 'false', 'null']

/** Returns the names of all roles that users may have: those of every mount first. */
export const namesOfRoles = (roles: Roles): string[] => [...ownRoles, ...roles.keys()]

/**
 * Returns what a role is called in GraphQL, whose names have no hyphens. No two roles have the same name there, because
 * their own names have no underscores.
 */
export const graphqlNameOf = (role: string): string => role.replaceAll('-', '_')

/** Returns the name of a role that GraphQL calls so. */
export const roleOfGraphqlName = (name: string): string => name.replaceAll('_', '-')

/**
 * Returns the roles of the option `roles`. Throws an `Error` that names the role, and the action if that is wrong.
 * @param actions the actions of the policy
 */
export function readRoles (given: unknown, actions: ReadonlySet<string>): Roles {
  if (given === undefined) return noRoles
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw problem("must be an object with a list of actions for each role, such as { moderator: ['posts:delete'] }")
  }
  const entries = Object.entries(given).map(([name, list]: [string, unknown]) => {
    if (!NAME.test(name) || [...ownRoles, ...notInGraphql].includes(name)) {
      throw problem(`cannot have a role ${JSON.stringify(name)}: a name has up to 40 lower-case letters, digits and hyphens, ` +
        `begins with a letter, and is none of ${[...ownRoles, ...notInGraphql].join(', ')}`)
    }
    if (!Array.isArray(list)) throw problem(`must have a list of actions for ${name}`)
    const unknown: unknown = list.find((action) => typeof action !== 'string' || !actions.has(action))
    if (unknown !== undefined) {
      throw problem(`gives ${name} the action ${JSON.stringify(unknown)}, which the policy does not have`)
    }
    return [name, new Set<string>(list)] as const
  })
  if (entries.length > MAX_ROLES) throw problem(`may have at most ${MAX_ROLES} roles`)
  return entries.length === 0 ? noRoles : new Map(entries)
}

const problem = (text: string) => new Error(`usher: roles ${text}`)
