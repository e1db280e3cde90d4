import { Type, type Static } from '@sinclair/typebox'
import type { FieldsSchema } from '../fields/fields.ts'
import { createParser } from '../http/validator.ts'
import { readOrganizationFields, type OrganizationFields } from '../organizations/organization-fields.ts'
import type { Actor, Policy, Rule } from './policy.ts'

/** What a member of an organisation may do in it (contract 19.4). */
export const organizationActions = [
  'organizations:read', 'organizations:update', 'organizations:delete',
  'members:list', 'members:invite', 'members:update', 'members:remove',
] as const

export type OrganizationAction = typeof organizationActions[number]

const MAX_ROLES = 20
const NAME = /^[a-z][a-z0-9-]{0,39}$/

const Settings = Type.Object({
  create: Type.Unsafe<'anyone' | 'admins'>({
    type: 'string',
    enum: ['anyone', 'admins'],
    default: 'anyone',
    description: 'Who may found an organisation: anyone with a verified address, or admins of the service',
  }),
  maxPerUser: Type.Integer({
    default: 20, minimum: 1, maximum: 1000, description: 'Organisations of which a user may be a member',
  }),
  maxMembers: Type.Integer({
    default: 10_000, minimum: 1, maximum: 1_000_000, description: 'Members that an organisation may have',
  }),
  maxInvitations: Type.Integer({
    default: 500, minimum: 1, maximum: 100_000, description: 'Invitations of an organisation that may be pending',
  }),
  invitationDays: Type.Integer({ default: 7, minimum: 1, maximum: 90, description: 'For how long an invitation works' }),
})

const parseSettings = createParser(Settings)
const settingNames = Object.keys(Settings.properties)

type Given = { [Name in keyof Static<typeof Settings>]?: Static<typeof Settings>[Name] | undefined }

/** The option `organizations`. */
export interface GivenOrganizations extends Given {
  /**
   * Roles beside `owner`, `admin` and `member`, with the actions of the policy that they have beyond those of a member;
   * `admin` and `member` may be named, to give them further ones.
   */
  roles?: Readonly<Record<string, readonly string[]>> | undefined
  /**
   * Fields to add to organisations: a TypeBox object, whose members say with `x-read` and `x-write` who may read and
   * write them.
   */
  fields?: FieldsSchema | undefined
}

/** The option `organizations` with its defaults. */
export interface Organizations extends Readonly<Static<typeof Settings>> {
  /** The actions of each role, in the order of their rank. */
  readonly roles: ReadonlyMap<string, ReadonlySet<string>>
  readonly fields: OrganizationFields
}

/** The role that an organisation always has (contract 19.6). */
export const OWNER = 'owner'

const problem = (message: string) => new Error(`usher: organizations ${message}`)

/**
 * Returns the option `organizations`, or undefined without it. Throws an `Error` that says what is wrong with it.
 * @param known the names of all actions, also those of the host
 */
export function readOrganizations (
  given: GivenOrganizations | boolean | undefined, known: ReadonlySet<string>
): Organizations | undefined {
  if (given === undefined || given === false) return undefined
  const { roles, fields, ...settings } = given === true ? {} as GivenOrganizations : given
  const unknown = Object.keys(settings).find((name) => !settingNames.includes(name))
  if (unknown !== undefined) throw problem(`has no member ${unknown}: there are ${[...settingNames, 'roles', 'fields'].join(', ')}`)
  const present = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined))
  return Object.freeze({
    ...parse(present), roles: readRoles(roles, known), fields: readOrganizationFields(fields),
  })
}

function parse (settings: object): Static<typeof Settings> {
  try {
    return parseSettings(settings)
  } catch (error) {
    throw problem(`is invalid: ${(error as Error).message}`)
  }
}

function readRoles (given: GivenOrganizations['roles'] = {}, known: ReadonlySet<string>): Organizations['roles'] {
  if (typeof given !== 'object' || given === null) throw problem('must have roles as an object of lists of actions')
  const extra = new Map(Object.entries(given).map(([role, actions]) => [role, readActions(role, actions, known)]))
  if (extra.size > MAX_ROLES) throw problem(`can have ${MAX_ROLES} roles at most`)
  const everything = [...known]
  const member = ['organizations:read', 'members:list', ...extra.get('member') ?? []]
  const ofAdmin = everything.filter((action) => action !== 'organizations:delete')
  const others = [...extra].filter(([role]) => role !== 'admin' && role !== 'member')
  return new Map([
    [OWNER, new Set(everything)],
    ['admin', new Set([...ofAdmin, ...extra.get('admin') ?? []])],
    ...others.map(([role, actions]) => [role, new Set([...member, ...actions])] as const),
    ['member', new Set(member)],
  ])
}

function readActions (role: string, actions: unknown, known: ReadonlySet<string>): readonly string[] {
  if (!NAME.test(role) || role === OWNER) {
    throw problem(`cannot have the role ${JSON.stringify(role)}: a name has lower-case letters, digits and hyphens, and ${OWNER} has every action`)
  }
  if (!Array.isArray(actions)) throw problem(`must have a list of actions for the role ${role}`)
  const unknown = actions.find((action) => !known.has(action))
  if (unknown !== undefined) throw problem(`has the role ${role} with the action ${unknown}, which the policy does not have`)
  return actions
}

/** Returns whether a role has all actions of another one, so that who has it may grant that one (contract 19.4). */
export function mayGrant ({ roles }: Pick<Organizations, 'roles'>, role: string, granted: string): boolean {
  const [own, other] = [roles.get(role), roles.get(granted)]
  if (!own || !other || (granted === OWNER && role !== OWNER)) return false
  return [...other].every((action) => own.has(action))
}

/** Returns whether the role of an actor in an organisation has an action there. */
export function hasRole (
  { roles }: Pick<Organizations, 'roles'>, { organization }: Pick<Actor, 'organization'>, id: string | undefined, action: string
): boolean {
  return organization !== null && organization.id === id && (roles.get(organization.role)?.has(action) ?? false)
}

/** Returns the default rules of the actions in organisations: those of the role in it, and everything for admins. */
export function organizationRules (organizations: Organizations): Pick<Policy, OrganizationAction | 'organizations:create'> {
  const ruleOf = (action: OrganizationAction): Rule => (actor, { organizationId }) =>
    actor.role === 'admin' || hasRole(organizations, actor, organizationId, action)
  const rules = Object.fromEntries(organizationActions.map((action) => [action, ruleOf(action)]))
  const create: Rule = (actor) => organizations.create === 'anyone' || actor.role === 'admin'
  return { ...rules as Record<OrganizationAction, Rule>, 'organizations:create': create }
}
