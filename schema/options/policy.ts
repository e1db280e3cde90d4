import type { HostRole, Register } from './register.ts'
import type { ActorClaims } from '../access/claims.ts'
import type { Role } from '../users/users.ts'
import type { Roles } from './roles.ts'

/** The organisation for which a token or an API key was issued (contract 19.3). */
export interface ActorOrganization {
  readonly id: string
  /** The user's role in it. */
  readonly role: string
  /** The membership, whose end is the end of the token. Another role is another membership. */
  readonly membershipId: string
}

/** The user behind a verified access token, with the session to which the token belongs, or behind an API key. */
export interface Actor {
  readonly id: string
  readonly role: Role
  /** The session of the token; null for an API key. */
  readonly sessionId: string | null
  /** The id of the API key with which the request was sent; null for a token. */
  readonly keyId: string | null
  /** The actions of the policy that the API key permits; null if nothing limits them, as for a token. */
  readonly actions: readonly string[] | null
  /**
   * How the user was authenticated (RFC 8176), such as `pwd`; empty for an API key, or if the token does not say so.
   */
  readonly amr: readonly string[]
  /** When the user was authenticated last, in seconds since 1970; 0 for an API key, or if the token does not say so. */
  readonly authTime: number
  /** The organisation for which the user acts, or null. */
  readonly organization: ActorOrganization | null
  /** What the option `claims` has added to the token, or would add to one of the API key's user. */
  readonly claims: ActorClaims
}

/** What an action is about. It has no members for an action that is not about something that exists, such as a list. */
export interface Resource {
  /** The id of the user who owns it. A user record is owned by its user. */
  readonly ownerId?: string | undefined
  /** The id of the organisation to which it belongs. */
  readonly organizationId?: string | undefined
}

/** What a rule says about itself. */
interface AboutRule {
  /** The roles of the host that have the action whatever the resource is (`policyOf`). */
  readonly listedBy?: ReadonlySet<string>
}

/** Returns whether an actor may perform an action on a resource. */
export interface Rule extends AboutRule {
  (actor: Actor, resource: Resource): boolean
}

/** Returns whether a reader may read a resource. The reader is null without a token. */
export interface ReadRule extends AboutRule {
  (reader: Actor | null, resource: Resource): boolean
  /**
   * Returns a text that is the same for all readers for whom the rule returns the same about every resource, so that
   * events are rendered once for all of them. Without it, each reader gets events that are rendered alone.
   */
  readonly sharedBy?: (reader: Actor | null) => string
}

const member: Rule = () => true
const admin: Rule = (actor) => actor.role === 'admin'
const owner: Rule = (actor, { ownerId }) => actor.role === 'admin' || actor.id === ownerId

const shared = (rule: ReadRule, sharedBy: (reader: Actor | null) => string): ReadRule =>
  Object.assign((reader: Actor | null, resource: Resource) => rule(reader, resource), { sharedBy })

/** Who may read something: anyone, everyone with a token, or its owner and admins. */
export const audiences = {
  anyone: shared(() => true, () => ''),
  members: shared((reader) => reader !== null, (reader) => reader ? 'member' : 'nobody'),
  owners: shared(
    (reader, resource) => reader !== null && owner(reader, resource),
    (reader) => reader ? reader.role === 'admin' ? 'admin' : reader.id : 'nobody'
  ),
} as const satisfies Record<string, ReadRule>

export type Audience = keyof typeof audiences

/** The rules of reads, whose actor may be null (contract 11.1). */
const readRules = {
  'users:list': audiences.anyone,
  'users:read': audiences.anyone,
  // Also the members that concern the account: whether the address is verified and whether the user is disabled.
  'users:read-email': audiences.anyone,
  'posts:read': audiences.anyone,
  'uploads:read': audiences.anyone,
  'uploads:list': audiences.owners,
  // Also the records of private uploads.
  'uploads:read-private': audiences.owners,
} satisfies Record<string, ReadRule>

/** The rules of everything that requires an actor (contract 2). */
const rules = {
  'users:create': admin,
  'users:replace': owner,
  'users:delete': owner,
  'users:export': owner,
  'users:grant-role': admin,
  'users:disable': admin,
  'users:invite': admin,
  'users:verify-email': owner,
  'sessions:list': member,
  'sessions:list-of-another': admin,
  'sessions:end': owner,
  'passwords:change': member,
  'passkeys:list': owner,
  'passkeys:remove': owner,
  'api-keys:create': owner,
  'api-keys:list': owner,
  'api-keys:delete': owner,
  'identities:list': owner,
  'identities:remove': owner,
  'second-factor:read': owner,
  'second-factor:change': member,
  'second-factor:reset': admin,
  'audit:read': owner,
  // Opening the console, which needs a session of its own. What is done there needs the actions of the API as well.
  'console:open': admin,
  // The overview and the settings of the service.
  'service:read': admin,
  // Events and mails that could not be delivered.
  'deliveries:list': admin,
  'deliveries:retry': admin,
  'deliveries:discard': admin,
  // Filters of lists of users by what only concerns their accounts.
  'users:filter': admin,
  'uploads:create': member,
  'uploads:update': owner,
  'uploads:delete': owner,
  // Creating, listing and revoking links.
  'uploads:share': owner,
  // The option `organizations` replaces these (`organizations.ts`).
  'organizations:create': admin,
  'organizations:read': admin,
  'organizations:update': admin,
  'organizations:delete': admin,
  'members:list': admin,
  'members:invite': admin,
  'members:update': admin,
  'members:remove': admin,
  'posts:create': member,
  'posts:create-for-another': admin,
  'posts:update': owner,
  'posts:delete': owner,
} satisfies Record<string, Rule>

// The rules of a mount without the options `policy` and `roles`. Everything that is not listed here is public.
const policy: Policy = { ...readRules, ...rules }

/**
 * Returns the whole policy of a mount: one rule per action. A rule of the option `policy` replaces that of Usher. A
 * role that lists an action has it beside those who have it anyway: by the rule of Usher, by one of `audiences`, or by
 * the rule that the host has given to an action of its own. Another rule of the host decides alone.
 * @param ofOrganizations the rules by the roles of the option `organizations`
 */
export function policyOf (given: GivenPolicy, roles: Roles, ofOrganizations: Partial<Policy> = {}): Policy {
  const isReplaced = (action: string, rule: unknown) =>
    Object.hasOwn(given, action) && Object.hasOwn(policy, action) && !isAudience(rule)
  const rules = Object.entries<Rule | ReadRule>({ ...policy, ...ofOrganizations, ...given })
  return Object.fromEntries(rules.map(([action, rule]) => {
    const listedBy = new Set([...roles].filter(([, actions]) => actions.has(action)).map(([name]) => name))
    if (listedBy.size === 0 || isReplaced(action, rule)) return [action, rule]
    return [action, isReadAction(action) ? withReaders(rule as ReadRule, listedBy) : withRoles(rule as Rule, listedBy)]
  })) as Policy
}

const isAudience = (rule: unknown): boolean => Object.values<unknown>(audiences).includes(rule)

const withRoles = (rule: Rule, listedBy: ReadonlySet<string>): Rule => Object.assign(
  (actor: Actor, resource: Resource) => listedBy.has(actor.role) || rule(actor, resource), { listedBy }
)

function withReaders (rule: ReadRule, listedBy: ReadonlySet<string>): ReadRule {
  // Whoever asks `isOpen` compares it, and nobody can read more than everybody.
  if (rule === audiences.anyone) return rule
  const isListed = (reader: Actor | null) => reader !== null && listedBy.has(reader.role)
  const { sharedBy } = rule
  return Object.assign((reader: Actor | null, resource: Resource) => isListed(reader) || rule(reader, resource), {
    listedBy, ...sharedBy && { sharedBy: (reader: Actor | null) => isListed(reader) ? 'listed' : sharedBy(reader) },
  })
}

/** Returns whether Usher has a rule for an action of this name. */
export const isOwnAction = (action: string): boolean => Object.hasOwn(policy, action)

/** Returns all actions of a mount. */
export const actionsOf = (given: GivenPolicy = {}): ReadonlySet<string> =>
  new Set([...Object.keys(policy), ...Object.keys(given)])

export type ReadAction = keyof typeof readRules
export type Action = keyof typeof rules
export type Policy = Record<ReadAction, ReadRule> & Record<Action, Rule>

/**
 * The actions that need a session: what decides who has the account, and what shows all of it. No API key permits them
 * (contract 17.1).
 */
export const sessionActions: ReadonlySet<string> = new Set<Action>([
  'passwords:change', 'passkeys:remove', 'identities:remove', 'second-factor:read', 'second-factor:change',
  'second-factor:reset', 'api-keys:create', 'users:export', 'console:open', 'organizations:delete',
])

/** Returns whether the token or the API key of an actor permits an action, which the policy must permit as well. */
export const isGranted = ({ keyId, actions }: Pick<Actor, 'keyId' | 'actions'>, action: string): boolean =>
  keyId === null || (!sessionActions.has(action) && (actions === null || actions.includes(action)))

/**
 * The names of the host's own actions, such as `bookmarks:create`: those that it has added to `Register` as `policy`,
 * which is either a union of names or the type of the rules.
 */
export type HostAction =
  Register extends { policy: infer Own } ? Own extends string ? Own : Extract<keyof Own, string> : never

/** The option `policy`: rules that replace those of Usher, and the rules of the host's own actions. */
export type GivenPolicy = Partial<Policy> & { [Name in HostAction]?: Rule }

/** The option `roles`: the actions of each role that the host adds. */
export type GivenRoles = { readonly [Name in HostRole]: readonly ListedAction[] } & {
  readonly [name: string]: readonly ListedAction[]
}
type ListedAction = Action | ReadAction | HostAction

/** Returns whether an action only reads, so that its rule also applies to readers without a token. */
export const isReadAction = (action: string): action is ReadAction => Object.hasOwn(readRules, action)

const resources = new Set(Object.keys(policy).map((action) => action.split(':')[0]!))

/**
 * Returns whether a host may give one of its own actions this name. The names of Usher's resources are reserved, so
 * that a name with a typing error is not taken for an action of the host.
 */
export function isHostAction (name: string): boolean {
  return /^[a-z][\w-]{0,39}:[a-z][\w-]{0,39}$/.test(name) && !resources.has(name.split(':')[0]!)
}
