import type { UserRow } from '../../db/tables/index.ts'
import { ActionNotGranted, SessionRequired } from '../../schema/sign-in/api-keys.ts'
import { Unauthenticated } from '../../schema/sign-in/login.ts'
import { createEntityTag } from '../../schema/http/entity-tag.ts'
import { Forbidden } from '../../schema/http/errors.ts'
import { shapeOf, showFields } from '../../schema/fields/fields.ts'
import type { Options } from '../../schema/options/options.ts'
import {
  audiences, isGranted, isReadAction, sessionActions, type Action, type Actor, type ReadAction, type Resource,
} from '../../schema/options/policy.ts'
import { accountMembers, roles as ownRoles, type AccountMember } from '../../schema/users/members.ts'
import { areOpen, readableFields, type UserFields } from '../../schema/users/user-fields.ts'

/** A user as a reader sees it: without the members of the account if the reader may not see them. */
export type VisibleUser = Omit<UserRow, AccountMember> & Partial<Pick<UserRow, AccountMember>>

/** How a user is shown to readers who see the same of it. */
export interface UserView {
  /** A text that is the same for views that show the same. */
  readonly key: string
  /** Returns the user without what these readers may not see. */
  show (user: UserRow): VisibleUser
  /**
   * Returns the entity tag of what they see (contract 10.1). All mounts with the same fields have the same tags, and
   * another view has others.
   */
  tagOf (user: Pick<UserRow, 'rowVersion'>): string
}

// The representation of a user. Another number gives all users new entity tags, for a release that represents the same
// rows differently.
const REPRESENTATION = 'user 1 application/json'

// A rule may depend on claims, and tokens of the same user may have different ones. It may depend on the API key, and
// on the organisation for which the token was issued.
function sharedByNobodyElse (reader: Actor | null): string {
  if (!reader) return 'nobody'
  const { id, role, claims, keyId, organization } = reader
  return `${id} ${role} ${JSON.stringify(claims)} ${keyId ?? ''} ${organization?.membershipId ?? ''}`
}

// Of an action that is not about something that has an owner.
const NOTHING: Resource = Object.freeze({})

const ofAccount: ReadonlySet<string> = new Set(accountMembers)

function withoutMembersOfAccount (user: UserRow): VisibleUser {
  const visible: Record<string, unknown> = {}
  for (const name in user) if (!ofAccount.has(name)) visible[name] = user[name as keyof UserRow]
  return visible as VisibleUser
}

const keyOf = (seesAccount: boolean, fields: UserFields) => `${seesAccount} ${fields.map(({ name }) => name)}`

export type AccessPolicy = ReturnType<typeof createPolicy>

/** Returns the reader whom the rule of a read gets: an API key without the action reads what anybody may. */
export const readerFor = (reader: Actor | null, action: ReadAction): Actor | null =>
  reader && isGranted(reader, action) ? reader : null

/** Returns the error of an actor who may not perform an action. */
export function denialOf (actor: Actor | null, action: string): Error {
  if (!actor) return new Unauthenticated()
  if (isGranted(actor, action)) return new Forbidden()
  return sessionActions.has(action) ? new SessionRequired() : new ActionNotGranted(action)
}

/** Returns the session of an actor. Throws `SessionRequired` for an API key. */
export function requireSession ({ sessionId }: Actor): string {
  if (sessionId === null) throw new SessionRequired()
  return sessionId
}

/** Decides who may do and see what (contract 2, 11.1). Nothing else asks the rules of the option `policy`. */
export function createPolicy (
  { policy: rules, userFields, roles }: Pick<Options, 'policy' | 'userFields' | 'roles'>
) {
  const fieldsAreOpen = areOpen(userFields)
  const [everything, withoutAccount] = [createView(true, userFields), createView(false, userFields)]
  // Those of readers who see only some of the fields, by what they see. There are few.
  const views = new Map<string, UserView>()

  /**
   * Returns whether anyone may do all of these. Then readers need not be identified, and all get the same responses.
   */
  const isOpen = (...actions: readonly ReadAction[]): boolean => actions.every((action) =>
    // Everything that shows a user depends on `users:read-email`, and therefore also on who may see the fields of the
    // host.
    rules[action] === audiences.anyone && (action !== 'users:read-email' || fieldsAreOpen))

  /** Returns whether an actor may perform an action. Somebody without an account, which is null, may at most read. */
  function allows (actor: Actor | null, action: Action | ReadAction, resource = NOTHING): boolean {
    if (isReadAction(action)) return rules[action](readerFor(actor, action), resource)
    return actor !== null && isGranted(actor, action) && rules[action](actor, resource)
  }

  /** Returns whether the role of an actor lists an action, which no rule of the host decides (contract 20.1). */
  const isListed = (actor: Actor | null, action: Action): boolean =>
    actor !== null && isGranted(actor, action) && (rules[action].listedBy?.has(actor.role) ?? false)

  // Returns whether a user may perform an action on everything. The limits of an API key do not matter: what gives
  // power over others gives it to the key.
  function hasEverywhere (actor: Actor, action: string): boolean {
    if (isReadAction(action)) return rules[action](actor, NOTHING)
    return rules[action as Action](actor, NOTHING)
  }

  /** Returns whether an actor may do all that another role permits beyond what every user may do (contract 20.1). */
  function covers (actor: Actor, role: string): boolean {
    if (actor.role === 'admin' || role === 'user') return true
    const actions = roles.get(role)
    return actions !== undefined && [...actions].every((action) => hasEverywhere(actor, action))
  }

  function createView (seesAccount: boolean, fields: UserFields): UserView {
    const variant = [REPRESENTATION, seesAccount, shapeOf(fields)]
    const tagOf = createEntityTag(JSON.stringify(variant))
    return {
      key: keyOf(seesAccount, fields),
      tagOf: ({ rowVersion }) => tagOf(rowVersion),
      show (user) {
        const shown = userFields.length === 0 ? user : showFields(userFields, fields, user)
        if (seesAccount) return shown
        return withoutMembersOfAccount(shown)
      },
    }
  }

  return {
    isOpen,
    allows,
    isListed,

    /**
     * Returns whether an actor who may grant roles may grant this one: each with its actions, and `admin` only by the
     * role `admin`, or by a rule of the host for `users:grant-role`. What is no role, the schema rejects.
     */
    mayGrant (actor: Actor, role: unknown): boolean {
      if (role === 'admin') return !isListed(actor, 'users:grant-role')
      return typeof role !== 'string' || !roles.has(role) || covers(actor, role)
    },

    /** Returns the roles with which an actor could perform an action on everything. */
    rolesWith: (actor: Actor, action: string): string[] => [
      ...ownRoles.filter((role) => hasEverywhere({ ...actor, role }, action)),
      ...[...roles].filter(([, actions]) => actions.has(action)).map(([name]) => name),
    ],

    /** Returns whether an actor has a role of the host, so that `mayManage` depends on the role of the other user. */
    hasRoleOfHost: ({ role }: Actor): boolean => roles.has(role),

    /**
     * Returns whether an actor may change the account of a user with a role, if the policy permits that: a role of the
     * host gives no power over users who may do more.
     */
    mayManage: (actor: Actor, role: string): boolean => !roles.has(actor.role) || covers(actor, role),

    /** Throws `Unauthenticated` or `Forbidden` if an actor may not perform an action. */
    authorize (actor: Actor | null, action: Action | ReadAction, resource?: Resource): void {
      if (!allows(actor, action, resource)) throw denialOf(actor, action)
    },

    /** Returns the member `security` of the description of a route that reads, unless it is public. */
    securityOf (action: ReadAction, others: readonly ReadAction[] = []) {
      if (isOpen(action, ...others)) return {}
      const bearer = { bearer: [] }
      return { security: allows(null, action) ? [{}, bearer] : [bearer] }
    },

    /** Returns how a reader sees a user. It asks the policy, so ask for it once. */
    viewOf (reader: Actor | null, userId: string): UserView {
      const seesAccount = allows(reader, 'users:read-email', { ownerId: userId })
      const fields = userFields.length === 0
        ? userFields
        : readableFields(userFields, readerFor(reader, 'users:read-email'), userId)
      if (fields.length === userFields.length) return seesAccount ? everything : withoutAccount
      const key = keyOf(seesAccount, fields)
      let view = views.get(key)
      if (!view) views.set(key, view = createView(seesAccount, fields))
      return view
    },

    /** Returns a user as the user sees the own record. */
    showOwn: (user: UserRow): UserRow =>
      userFields.length === 0 ? user : showFields(userFields, readableFields(userFields, user, user.id), user),

    /** How the host sees all users. */
    wholeView: everything,

    /**
     * Returns a text that is the same for all readers who may perform these actions on the same records. What is
     * rendered for one of them may be sent to the others.
     */
    audienceOf (reader: Actor | null, actions: readonly ReadAction[]): string {
      return actions.filter((action) => !isOpen(action)).map((action) => {
        const one = readerFor(reader, action)
        const { sharedBy = sharedByNobodyElse } = rules[action]
        const fields = action === 'users:read-email' && !fieldsAreOpen ? audiences.owners.sharedBy!(one) : ''
        return `${sharedBy(one)} ${fields}`
      }).join('\n')
    },
  }
}
