import { randomBytes } from 'node:crypto'
import { batchCalls } from '../../db/batching/batching.ts'
import type { StoredResult } from '../../db/idempotency/idempotency.ts'
import {
  deleteMembership, deleteOrganization, findMember, findStandings, hasRoom, insertMembership, insertOrganization,
  isSlugFree, listOrganizations, listOrganizationsOf, lockStanding, mayJoin, replaceMembership,
  restoreOrganization, storeCreation, updateOrganization, type MemberRow, type MembershipRow,
  type OrganizationRow, type OrganizationValues, type OwnOrganizationRow, type Standing, type StandingKey,
} from '../../db/organizations/organizations.ts'
import { deleteInvitationsFor, hasInvited, keepInvitationsBy } from '../../db/organizations/invitations.ts'
import {
  listMembersOf, membersKey, searchMembers, type ListMembersQuery, type MembersKey,
} from '../../db/organizations/list-members.ts'
import { requireOwner } from '../../db/organizations/owners.ts'
import { isUuid } from '../../db/driver/postgres.ts'
import { storeEvent } from '../../db/outbox/store.ts'
import { toPage, type Page } from '../../db/tables/page.ts'
import type { Database } from '../../db/tables/index.ts'
import { lockUser } from '../../db/users/users.ts'
import { permits, type Match } from '../../schema/http/entity-tag.ts'
import { Forbidden, InvalidInput, PreconditionFailed } from '../../schema/http/errors.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { createParser } from '../../schema/http/validator.ts'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import { EmailNotVerified } from '../../schema/sign-in/mails.ts'
import { mayGrant, OWNER, type OrganizationAction, type Organizations } from '../../schema/options/organizations.ts'
import { isGranted } from '../../schema/options/policy.ts'
import {
  checkOrganization, CreateOrganization, isSlug, MembershipNotFound, OrganizationNotFound, slugOf, TooManyMembers,
  TooManyOrganizations, PatchOrganization,
} from '../../schema/organizations/organizations.ts'
import { createOrganizationExtension } from '../../schema/organizations/extend-organization.ts'
import { withoutProtected, writableFields } from '../../schema/organizations/organization-fields.ts'
import { UserDisabled, UserNotFound } from '../../schema/users/users.ts'
import type { Caller } from '../access/caller.ts'
import { denialOf } from '../access/policy.ts'
import { throwUnavailable, type Sessions } from '../access/sessions.ts'
import type { Audit } from '../audit/index.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { StepUp } from '../sign-in/step-up.ts'
import type { Asker, Inviters } from './inviters.ts'
import { createViews, isAdmin } from './views.ts'

const SUFFIX_BYTES = 3
// A hook sees every field.
const HOST = { isHost: true, actor: null }

/** What the operations on organisations are made from. */
export interface OrganizationDependencies extends Core {
  organizations: Organizations
  audit: Audit
  hooks: HookRunner
  inviters: Inviters
  sessions: Pick<Sessions, 'markEnded'>
  stepUp: StepUp
}

/** Where they are asked for: what they depend on of an organisation and a membership. */
interface Place { readonly organization: Pick<OrganizationRow, 'id'>, readonly membership: MembershipRow | undefined }

interface ListQuery { q?: string | undefined, limit: number, after?: string | undefined }

export type OrganizationOperations = ReturnType<typeof createOrganizations>

/** A member as a reader sees it: without the members of the account if the reader may not see them. */
export type ShownMember = Omit<MemberRow, 'email' | 'disabled'> & Partial<Pick<MemberRow, 'email' | 'disabled'>>

/**
 * Creates the operations on organisations and their members (contract 19). All throw `OrganizationNotFound` for who may
 * not read the organisation, and `Unauthenticated`, `Forbidden` or `InvalidToken`. Those that change something take
 * the lock of the organisation first, and then decide whether the caller may do it, by the membership as it is then.
 */
export function createOrganizations (
  {
    database: { db, newId }, telemetry: { batch }, organizations: settings, audit, hooks, inviters, sessions, stepUp,
    options: { deadlines },
  }: OrganizationDependencies
) {
  const { roles, maxPerUser, maxMembers, fields } = settings
  const extend = createOrganizationExtension(fields)
  const [parseNew, parseChanges] = [createParser(extend(CreateOrganization)), createParser(extend(PatchOrganization))]
  const viewOf = createViews(fields)
  const readStanding = batchCalls((keys: StandingKey[]) => findStandings(db, keys, fields), {
    timeoutMs: deadlines.batch, telemetry: batch('organizations.read'),
  })
  const readMembers = batchCalls((keys: MembersKey[]) => listMembersOf(db, keys), {
    timeoutMs: deadlines.batch, telemetry: batch('members.list'),
  })
  const readOwn = batchCalls((userIds: string[]) => listOrganizationsOf(db, userIds, fields), {
    timeoutMs: deadlines.batch, telemetry: batch('organizations.list-own'),
  })

  // The user by whose membership the caller acts. A token for another organisation is that of an outsider.
  function memberOf ({ actor }: Caller, id: string): string | undefined {
    return actor && (actor.organization === null || actor.organization.id === id) ? actor.id : undefined
  }

  // Throws unless there is a caller whose API key, if it is one, permits an action.
  function requireGranted (caller: Caller, action: OrganizationAction): void {
    caller.requireIdentity()
    if (caller.actor && !isGranted(caller.actor, action)) throw denialOf(caller.actor, action)
  }

  /** Throws unless the caller may perform an action in an organisation. */
  function authorize (
    caller: Caller, action: OrganizationAction, standing: Standing | undefined
  ): asserts standing is Standing {
    // What a key may do says nothing about an organisation, so it comes first.
    requireGranted(caller, action)
    if (!standing || (!standing.membership && !allows(caller, 'organizations:read', standing))) {
      throw new OrganizationNotFound()
    }
    caller.authorize(action, { organizationId: standing.organization.id }, membershipOf(standing))
  }

  const allows = (caller: Asker, action: OrganizationAction, standing: Place): boolean =>
    caller.allows(action, { organizationId: standing.organization.id }, membershipOf(standing))

  // Returns whether the caller has a permission in every organisation, as admins of the service have. A rule of the
  // host may go by the organisation of the token, which says nothing about others.
  const allowsEverywhere = (caller: Asker, action: OrganizationAction): boolean =>
    caller.allows(action, undefined, null)

  /** Throws unless the caller has a permission in every organisation. */
  const authorizeEverywhere = (caller: Caller, action: OrganizationAction): void =>
    caller.authorize(action, undefined, null)

  // Returns an organisation as a caller sees it.
  const show = <Row extends OrganizationRow>(caller: Caller, organization: Row): Row =>
    viewOf(caller).show(organization)

  /**
   * Returns an input without the fields of the host that a caller may not write, for whoever validates it: their values
   * do not matter. Whatever is no object is returned as it is.
   */
  function withoutIgnored (caller: Caller, given: unknown): unknown {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
    return withoutProtected(fields, given, isAdmin(caller))
  }

  // Returns those fields of the host in a valid input that the caller may write.
  const fieldsIn = (caller: Caller, given: object): object =>
    Object.fromEntries(writableFields(fields, isAdmin(caller))
      .map(({ name }) => [name, Reflect.get(given, name)] as const).filter(([, value]) => value !== undefined))

  // Returns an organisation, with every field of the host, and with the membership of the caller.
  async function readWhole (caller: Caller, action: OrganizationAction, given: string): Promise<Standing> {
    const id = given.toLowerCase()
    const standing =
      await readStanding(`${id} ${memberOf(caller, id) ?? ''}`, caller.client).catch(throwUnavailable)
    authorize(caller, action, standing)
    await caller.confirm()
    return standing
  }

  /** Returns an organisation as the caller sees it, with the membership of the caller. */
  async function read (caller: Caller, action: OrganizationAction, id: string): Promise<Standing> {
    const { organization, membership } = await readWhole(caller, action, id)
    return { organization: show(caller, organization), membership }
  }

  /** Locks an organisation, and does the same. It has every field of the host. */
  async function lock (
    trx: Database, caller: Caller, action: OrganizationAction, given: string
  ): Promise<Standing> {
    const id = given.toLowerCase()
    const standing = await lockStanding(trx, id, memberOf(caller, id), fields)
    authorize(caller, action, standing)
    return standing
  }

  /**
   * Throws `InvalidInput` for a role that there is not, and `Forbidden` if the caller may not give or take it. Admins
   * of the service may give each.
   */
  function authorizeRole (
    caller: Caller, { membership }: Pick<Standing, 'membership'>, role: string, isGiven = true
  ): void {
    if (isGiven && !roles.has(role)) throw new InvalidInput(`role must be one of ${[...roles.keys()].join(', ')}`)
    const may = isGiven || role === OWNER
      ? mayGive(caller, membership, role)
      : membership !== undefined || allowsEverywhere(caller, 'members:update')
    if (!may) throw new Forbidden()
  }

  // Returns whether somebody may make a member of an organisation what this role is.
  const mayGive = (asker: Asker, membership: MembershipRow | undefined, role: string): boolean =>
    allowsEverywhere(asker, 'members:update') || (membership !== undefined && mayGrant(settings, membership.role, role))

  /** Returns whether somebody may invite others to a role: what `authorize` and `authorizeRole` ask. */
  const mayInvite = (asker: Asker, standing: Place, role: string): boolean => roles.has(role) &&
    (standing.membership !== undefined || allows(asker, 'organizations:read', standing)) &&
    allows(asker, 'members:invite', standing) && mayGive(asker, standing.membership, role)

  // Adds a user to an organisation that is locked, as is the user.
  async function join (
    trx: Database, caller: Caller, { id: organizationId }: OrganizationRow,
    { userId, role }: { userId: string, role: string }
  ): Promise<MembershipRow> {
    if (!await hasRoom(trx, organizationId, maxMembers)) throw new TooManyMembers(maxMembers)
    const added = await insertMembership(trx, { organizationId, userId, role })
    // The user is locked, so nothing else adds a membership of the same user meanwhile.
    if (!await mayJoin(trx, userId, maxPerUser + 1)) throw new TooManyOrganizations(maxPerUser)
    await audit.add(caller, { action: 'membership.add', userId, organizationId }, trx)
    await storeEvent(trx, 'membership.created', organizationId, {
      organizationId, membershipId: added.id, userId, role, actorId: caller.actor?.id ?? null,
    })
    return added
  }

  const eventOf = ({ id: organizationId, name, slug }: OrganizationRow, { actor }: Caller) =>
    ({ organizationId, name, slug, actorId: actor?.id ?? null })

  const checkHooked = (input: unknown): OrganizationValues => {
    const { slug, ...others } = parseNew(input)
    checkOrganization({ ...others, slug })
    if (slug === undefined) throw new Error('slug is required')
    return { ...others, slug }
  }

  // Returns a slug that was free a moment ago, for a founder who has chosen none.
  async function findSlug (name: string): Promise<string> {
    const base = slugOf(name)
    if (isSlug(base) && await isSlugFree(db, base)) return base
    return `${base === '' ? 'org' : base}-${randomBytes(SUFFIX_BYTES).toString('hex')}`
  }

  function showMember (caller: Caller, standing: Standing, { email, disabled, ...member }: MemberRow): ShownMember {
    const isShown = caller.allows('users:read-email', { ownerId: member.userId }) ||
      allows(caller, 'members:invite', standing)
    return isShown ? { ...member, email, disabled } : member
  }

  async function getMember (db: Database, organizationId: string, userId: string): Promise<MemberRow> {
    const member = await findMember(db, organizationId, userId)
    if (!member) throw new MembershipNotFound()
    return member
  }

  /**
   * Returns the organisations of a user with the user's role, the one joined last first. A token for one organisation
   * shows that one only.
   */
  async function listOf (caller: Caller, userId: string): Promise<OwnOrganizationRow[]> {
    const isOwn = caller.actor?.id === userId
    if (isOwn) requireGranted(caller, 'organizations:read')
    else authorizeEverywhere(caller, 'organizations:read')
    const listed = await readOwn(userId, caller.client).catch(throwUnavailable)
    await caller.confirm()
    const only = isOwn ? caller.actor?.organization : null
    return (only ? listed.filter(({ id }) => id === only.id) : listed).map((one) => show(caller, one))
  }

  // Returns a page of the caller's own organisations, newest first. There are few of them.
  async function listOwnPage (caller: Caller, { q, limit, after }: ListQuery): Promise<Page<OrganizationRow>> {
    const begins = (text: string) => q === undefined || text.toLowerCase().startsWith(q.toLowerCase())
    const own = (await listOf(caller, caller.getActor().id))
      .filter(({ id, name, slug }) => (begins(name) || begins(slug)) && (after === undefined || id < after))
      .sort((one, other) => one.id < other.id ? 1 : -1)
    return toPage(own.slice(0, limit + 1), limit)
  }

  return {
    read,
    lock,
    /** Locks an organisation for whoever has the token of an invitation, and needs no permission. */
    lockUnchecked: (trx: Database, id: string) => lockStanding(trx, id, undefined, fields),
    join,
    allows,
    authorizeRole,
    mayInvite,
    authorizeEverywhere,
    viewOf,
    withoutIgnored,

    /** Returns what a caller may set of a new organisation, also of the fields of the host. Throws `InvalidInput`. */
    readNew: (caller: Caller, given: unknown): CreateOrganization => parseNew(withoutIgnored(caller, given)),

    /** Returns what a caller may change of an organisation, also of the fields of the host. Throws `InvalidInput`. */
    readChanges: (caller: Caller, given: unknown): PatchOrganization => parseChanges(withoutIgnored(caller, given)),

    /** Returns an organisation. */
    async get (caller: Caller, id: string): Promise<OrganizationRow> {
      return (await read(caller, 'organizations:read', id)).organization
    },

    /** Returns a page of all organisations for who may read each, otherwise of the caller's own, newest first. */
    async list (caller: Caller, query: ListQuery): Promise<Page<OrganizationRow>> {
      requireGranted(caller, 'organizations:read')
      if (!allowsEverywhere(caller, 'organizations:read')) return listOwnPage(caller, query)
      const { rows, next } = await listOrganizations(db, query, fields)
      await caller.confirm()
      return { rows: rows.map((one) => show(caller, one)), next }
    },

    listOf,

    /**
     * Founds an organisation, of which the founder is the owner. Throws `InvalidInput`, `SlugTaken`,
     * `TooManyOrganizations`, `EmailNotVerified`, what a hook of the host throws, and `KeyTaken` if the key is taken.
     * @param ownerId the founder, if the host founds it for somebody else
     */
    async create (
      caller: Caller, given: CreateOrganization,
      { ownerId = caller.actor?.id, once }: { ownerId?: string | undefined, once?: ResultKey | undefined } = {}
    ): Promise<OrganizationRow> {
      caller.authorize('organizations:create')
      if (ownerId === undefined) throw new InvalidInput('ownerId is required')
      // As for members who are added without an invitation.
      if (ownerId !== caller.actor?.id) authorizeEverywhere(caller, 'members:invite')
      checkOrganization(given)
      const { name, slug = await findSlug(name) } = given
      const wanted = { name, slug, ...fieldsIn(caller, given) }
      const values = await hooks.change('beforeOrganizationCreate', wanted, caller, checkHooked)
      const id = newId()
      await hooks.check('beforeMemberAdd', { organizationId: id, userId: ownerId, role: OWNER }, caller)
      return db.transaction().execute(async (trx) => {
        const user = await lockUser(trx, ownerId)
        if (!user) throw ownerId === caller.actor?.id ? new InvalidToken() : new UserNotFound()
        if (user.disabled) throw new UserDisabled()
        if (!user.emailVerified && !allowsEverywhere(caller, 'members:invite')) throw new EmailNotVerified()
        const created = await insertOrganization(trx, { ...values, id }, fields)
        await audit.add(caller, { action: 'organization.create', userId: ownerId, organizationId: id }, trx)
        await storeEvent(trx, 'organization.created', id, eventOf(created, caller))
        await join(trx, caller, created, { userId: ownerId, role: OWNER })
        await requireOwner(trx, id)
        if (once) await storeCreation(trx, id, once, fields)
        await caller.confirm()
        return show(caller, created)
      })
    },

    /** Returns an organisation again that was created with an idempotency key, as it was then. */
    restoreCreated (caller: Caller, stored: StoredResult): OrganizationRow {
      caller.authorize('organizations:create')
      return show(caller, restoreOrganization(stored))
    },

    /** Changes an organisation. Throws `InvalidInput`, `SlugTaken`, `PreconditionFailed`. */
    async update (caller: Caller, id: string, given: PatchOrganization, match?: Match): Promise<OrganizationRow> {
      const changes = {
        ...given.name !== undefined && { name: given.name },
        ...given.slug !== undefined && { slug: given.slug },
        ...fieldsIn(caller, given),
      }
      checkOrganization(changes)
      return db.transaction().execute(async (trx) => {
        const { organization } = await lock(trx, caller, 'organizations:update', id)
        if (!permits(match, organization.rowVersion)) throw new PreconditionFailed()
        if (Object.keys(changes).length === 0) return show(caller, organization)
        const updated = await updateOrganization(trx, organization.id, changes, fields)
        await audit.add(caller, { action: 'organization.update', organizationId: updated.id }, trx)
        await storeEvent(trx, 'organization.updated', updated.id, eventOf(updated, caller))
        await caller.confirm()
        return show(caller, updated)
      })
    },

    /**
     * Deletes an organisation with its memberships, which end on every node. Throws `StepUpRequired`,
     * `OrganizationInUse`, `PreconditionFailed`, and what a hook of the host throws.
     */
    async delete (caller: Caller, id: string, match?: Match): Promise<void> {
      const { organization } = await readWhole(caller, 'organizations:delete', id)
      await stepUp.require(caller)
      await hooks.check('beforeOrganizationDelete', viewOf(HOST).show(organization), caller)
      const ended = await db.transaction().execute(async (trx) => {
        const { organization } = await lock(trx, caller, 'organizations:delete', id)
        if (!permits(match, organization.rowVersion)) throw new PreconditionFailed()
        const ended = await deleteOrganization(trx, organization.id)
        await audit.add(caller, { action: 'organization.delete', organizationId: organization.id }, trx)
        await storeEvent(trx, 'organization.deleted', organization.id, eventOf(organization, caller))
        await caller.confirm()
        return ended
      })
      sessions.markEnded(ended)
    },

    /** Returns a page of members. */
    async listMembers (caller: Caller, id: string, query: ListMembersQuery): Promise<Page<ShownMember>> {
      const standing = await read(caller, 'members:list', id)
      const { organization: { id: organizationId } } = standing
      const { q } = query
      const { rows, next } = q === undefined
        ? await readMembers(membersKey(organizationId, query), caller.client).catch(throwUnavailable)
        : await searchMembers(db, organizationId, { ...query, q })
      await caller.confirm()
      return { rows: rows.map((member) => showMember(caller, standing, member)), next }
    },

    /** Returns a member. Throws `MembershipNotFound`. */
    async getMember (caller: Caller, id: string, userId: string): Promise<ShownMember> {
      const standing = await read(caller, 'members:list', id)
      const member = await getMember(db, standing.organization.id, userId)
      await caller.confirm()
      return showMember(caller, standing, member)
    },

    /**
     * Adds a user without an invitation, which only the host and admins of the service may. Throws `InvalidInput`,
     * `UserNotFound`, `UserDisabled`, `AlreadyMember`, `TooManyMembers`, `TooManyOrganizations`, and what a hook of the
     * host throws.
     */
    async addMember (
      caller: Caller, id: string, { userId: given, role }: { userId: string, role: string }
    ): Promise<ShownMember> {
      const userId = given.toLowerCase()
      const standing = await read(caller, 'members:invite', id)
      authorizeEverywhere(caller, 'members:invite')
      authorizeRole(caller, standing, role)
      await hooks.check('beforeMemberAdd', { organizationId: standing.organization.id, userId, role }, caller)
      const member = await db.transaction().execute(async (trx) => {
        const user = await lockUser(trx, userId)
        if (!user) throw new UserNotFound()
        if (user.disabled) throw new UserDisabled()
        const { organization } = await lock(trx, caller, 'members:invite', id)
        await join(trx, caller, organization, { userId, role })
        await deleteInvitationsFor(trx, organization.id, user.email)
        await caller.confirm()
        return getMember(trx, organization.id, userId)
      })
      return showMember(caller, standing, member)
    },

    /**
     * Gives a member another role, which is another membership: tokens and API keys for the former one end on every
     * node. Throws `InvalidInput`, `MembershipNotFound`, `LastOwner`.
     */
    async updateMember (caller: Caller, id: string, userId: string, role: string): Promise<ShownMember> {
      const { organization: { id: organizationId } } = await read(caller, 'members:update', id)
      // The host's claims are needed for the invitations only.
      const found = await hasInvited(db, organizationId, userId) ? await inviters.find(db, userId) : null
      const { standing, member, former } = await db.transaction().execute(async (trx) => {
        // Otherwise somebody who is being disabled or deleted could become the only owner.
        if (role === OWNER && isUuid(userId)) await lockUser(trx, userId)
        const standing = await lock(trx, caller, 'members:update', id)
        const member = await getMember(trx, organizationId, userId)
        authorizeRole(caller, standing, member.role, false)
        authorizeRole(caller, standing, role)
        if (member.role === role) return { standing, member, former: undefined }
        const replaced = await replaceMembership(trx, member.id, role)
        const inviter = found && await inviters.find(trx, userId, found)
        const place = { ...standing, membership: replaced }
        await keepInvitationsBy(trx, replaced.id, inviter === null
          ? []
          : [...roles.keys()].filter((given) => mayInvite(inviters.askerOf(inviter), place, given)))
        await requireOwner(trx, organizationId)
        await audit.add(caller, { action: 'membership.role-change', userId: member.userId, organizationId }, trx)
        await storeEvent(trx, 'membership.updated', organizationId, {
          organizationId, membershipId: replaced.id, userId: member.userId, role, actorId: caller.actor?.id ?? null,
        })
        await caller.confirm()
        return { standing, member: { ...member, ...replaced }, former: member.id }
      })
      if (former !== undefined) sessions.markEnded([former])
      return showMember(caller, standing, member)
    },

    /**
     * Ends the membership of a user, or of the caller, who needs no permission to leave. Throws `MembershipNotFound`,
     * `LastOwner`.
     */
    async removeMember (caller: Caller, id: string, given: string): Promise<void> {
      const userId = given.toLowerCase()
      const isOwn = caller.actor?.id === userId
      // Leaving needs no permission of the policy, but a key that may only read must not do it.
      if (caller.actor && !isGranted(caller.actor, 'members:remove')) throw denialOf(caller.actor, 'members:remove')
      const ended = await db.transaction().execute(async (trx) => {
        const standing = await lock(trx, caller, isOwn ? 'organizations:read' : 'members:remove', id)
        const { organization: { id: organizationId } } = standing
        const member = await getMember(trx, organizationId, userId)
        if (!isOwn) authorizeRole(caller, standing, member.role, false)
        await deleteMembership(trx, member.id)
        await requireOwner(trx, organizationId)
        await audit.add(caller, { action: 'membership.remove', userId, organizationId }, trx)
        await storeEvent(trx, 'membership.deleted', organizationId, {
          organizationId, membershipId: member.id, userId, role: member.role, actorId: caller.actor?.id ?? null,
        })
        await caller.confirm()
        return member.id
      })
      sessions.markEnded([ended])
    },
  }
}

/** Returns the membership as what the policy sees of an actor. */
function membershipOf ({ organization, membership }: Place) {
  return membership ? { id: organization.id, role: membership.role, membershipId: membership.id } : null
}
