import {
  deleteInvitation, findInvitation, hasRoomForInvitation, isMemberAddress, listInvitations, storeInvitation,
  useInvitation, type InvitationRow, type OpenInvitation,
} from '../../db/organizations/invitations.ts'
import type { MembershipRow } from '../../db/organizations/organizations.ts'
import { insertMail } from '../../db/outbox/mails.ts'
import { storeEvent } from '../../db/outbox/store.ts'
import type { Page } from '../../db/tables/page.ts'
import type { Database, UserRow } from '../../db/tables/index.ts'
import { findUsersByEmail, lockUser } from '../../db/users/users.ts'
import { foldEmail } from '../../schema/strings/address.ts'
import { invalidMailToken } from '../../schema/mail-links/mail-token.ts'
import { NoMailer, PasswordRequired } from '../../schema/sign-in/passwords/passwords.ts'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import {
  AlreadyMember, InvitationLoginRequired, InvitationNotFound, OtherAddress, TooManyInvitations, type AcceptInvitation,
  type CreateInvitation,
} from '../../schema/organizations/organizations.ts'
import type { NewUsers } from '../accounts/index.ts'
import type { Caller } from '../access/caller.ts'
import { hashSecret } from '../access/secrets.ts'
import type { LinkFactory } from '../mail-links/mail-link.ts'
import type { Mails } from '../outbox/mails/index.ts'
import type { Throttle } from '../throttle/throttle.ts'
import type { Inviter, Inviters } from './inviters.ts'
import type { OrganizationDependencies, OrganizationOperations } from './organizations.ts'

const DAY_SECONDS = 86_400
/** The role of an invitation that names none. */
const DEFAULT_ROLE = 'member'

interface Dependencies extends OrganizationDependencies {
  operations: OrganizationOperations
  inviters: Inviters
  links: LinkFactory
  mails: Mails
  newUsers: Pick<NewUsers, 'createByInvitation'>
  throttle: Throttle
}

/** What the recipient of an invitation sees, and needs to accept it. */
export interface CheckedInvitation {
  organization: { id: string, name: string }
  email: string
  role: string
  invitedBy: string | null
  /** Whether an account has the address, whose user must log in. Otherwise a new one is created. */
  hasAccount: boolean
}

/** The membership of whoever has accepted an invitation. */
export interface AcceptedInvitation extends MembershipRow { organizationId: string, userId: string }

/** An invitation that may be accepted. Its inviter is null if it was the service. */
interface Opened extends OpenInvitation { readonly inviter: Inviter | null }

export type Invitations = ReturnType<typeof createInvitations>

/**
 * Creates the operations on invitations to organisations (contract 19.5). An invitation goes to an address, and is
 * accepted with the token of its mail by the user who has proved to have that address.
 */
export function createInvitations (
  {
    database: { db }, organizations: settings, audit, hooks, operations, links, mails: { mailer, render }, newUsers,
    throttle, inviters, options: { loginMail },
  }: Dependencies
) {
  const { roles, maxInvitations, invitationDays } = settings
  const { read, lock, join, authorizeRole } = operations

  // Returns whether the user who has invited still may: the policy is asked what it was asked then, about the user and
  // the membership as they are now.
  function isStillGranted (
    { organizationId, role, invitedBy, membership }: OpenInvitation, inviter: Inviter | null
  ): boolean {
    if (invitedBy === null) return roles.has(role)
    const place = { organization: { id: organizationId }, membership: membership ?? undefined }
    return inviter !== null && operations.mayInvite(inviters.askerOf(inviter), place, role)
  }

  // Returns the invitation of a token. Throws `InvalidInput` if it was used, withdrawn or replaced, has expired, or its
  // inviter may not invite any more.
  async function open (db: Database, hash: Uint8Array, known?: Inviter): Promise<Opened> {
    const invitation = await findInvitation(db, hash)
    if (!invitation) throw invalidMailToken()
    const { invitedBy } = invitation
    const inviter = invitedBy === null ? null : await inviters.find(db, invitedBy, known)
    if (!isStillGranted(invitation, inviter)) throw invalidMailToken()
    return { ...invitation, inviter }
  }

  // Makes a user, who is locked, a member, and uses the invitation up.
  async function use (
    trx: Database, caller: Caller, hash: Uint8Array, userId: string, { organizationId, inviter }: Opened
  ): Promise<MembershipRow> {
    const standing = await operations.lockUnchecked(trx, organizationId)
    // Once more, because it may have changed before the lock.
    const invitation = await open(trx, hash, inviter ?? undefined)
    if (!standing || !await useInvitation(trx, hash)) throw invalidMailToken()
    const added = await join(trx, caller, standing.organization, { userId, role: invitation.role })
    await storeEvent(trx, 'invitation.accepted', organizationId, eventOf(organizationId, invitation, userId))
    return added
  }

  const eventOf = (organizationId: string, { id, email, role }: InvitationRow, actorId: string | null) =>
    ({ organizationId, invitationId: id, email, role, actorId })

  async function acceptAsUser (
    caller: Caller, hash: Uint8Array, invitation: Opened
  ): Promise<AcceptedInvitation> {
    const { id: userId } = caller.getSession()
    const { organizationId, role } = invitation
    await hooks.check('beforeMemberAdd', { organizationId, userId, role }, caller)
    return db.transaction().execute(async (trx) => {
      const user = await lockUser(trx, userId)
      if (!user) throw new InvalidToken()
      if (!user.emailVerified || foldEmail(user.email) !== foldEmail(invitation.email)) throw new OtherAddress()
      const added = await use(trx, caller, hash, userId, invitation)
      await caller.confirm()
      return { ...added, organizationId, userId }
    })
  }

  async function acceptAsNewcomer (
    caller: Caller, hash: Uint8Array, invitation: Opened, { name, password }: Omit<AcceptInvitation, 'token'>
  ): Promise<AcceptedInvitation> {
    const { organizationId, email } = invitation
    await rejectExisting(email)
    // Without a password, the user logs in by mails.
    if (name === undefined || (password === undefined && !loginMail)) throw new PasswordRequired()
    let added: MembershipRow | undefined
    const user = { name, password, email }
    const { id: userId } = await createNewcomer(caller, hash, invitation, user, async (_, membership) => {
      added = membership
    })
    return { ...added!, organizationId, userId }
  }

  async function rejectExisting (email: string): Promise<void> {
    const [existing] = await findUsersByEmail(db, [email])
    if (existing) throw new InvitationLoginRequired()
  }

  // Creates a user who is a member, in one transaction.
  function createNewcomer (
    caller: Caller, hash: Uint8Array, invitation: Opened, user: Parameters<NewUsers['createByInvitation']>[1],
    inTransaction: (trx: Database, membership: MembershipRow, created: UserRow) => Promise<void>
  ): Promise<UserRow> {
    const { organizationId, role } = invitation
    return newUsers.createByInvitation(caller, user, {
      check: (userId) => hooks.check('beforeMemberAdd', { organizationId, userId, role }, caller),
      inTransaction: async (trx, created) =>
        inTransaction(trx, await use(trx, caller, hash, created.id, invitation), created),
    })
  }

  return {
    /**
     * Sends an invitation to an address, which replaces the pending one for it. Whether the address has an account is
     * not told. Throws `InvalidInput`, `Forbidden` for a role that the caller may not grant, `AlreadyMember`,
     * `TooManyInvitations`, `TooManyRequests`, `NoMailer`.
     */
    async create (
      caller: Caller, id: string, { email, role = DEFAULT_ROLE }: CreateInvitation
    ): Promise<InvitationRow> {
      const { organization: { id: organizationId } } = await read(caller, 'members:invite', id)
      if (!mailer) throw new NoMailer()
      const { actor, address, client, acceptLanguage } = caller
      if (actor) await throttle.invitation({ userId: actor.id, address, ...client && { client } })
      const { hash, link } = links.create('/join')
      return db.transaction().execute(async (trx) => {
        const standing = await lock(trx, caller, 'members:invite', id)
        const { organization, membership } = standing
        authorizeRole(caller, standing, role)
        const hasRoom = await hasRoomForInvitation(trx, organizationId, email, maxInvitations)
        if (!hasRoom) throw new TooManyInvitations(maxInvitations)
        // Members are known to whoever may invite.
        if (await isMemberAddress(trx, organizationId, email)) throw new AlreadyMember()
        const stored = await storeInvitation(trx, {
          hash,
          organizationId,
          email,
          role,
          invitedBy: actor?.id ?? null,
          membershipId: membership?.id ?? null,
          days: invitationDays,
        })
        const seconds = invitationDays * DAY_SECONDS
        const values = { link, duration: seconds, organization: withoutLinks(organization.name) }
        // Who invites and who is invited often speak the same language.
        const content = render('organization-invitation', acceptLanguage, values)
        await insertMail(trx, mailer.prepare(content, seconds, { budget: 'organization', hash }), email, null)
        await audit.add(caller, { action: 'organization.invite', organizationId }, trx)
        await storeEvent(trx, 'invitation.created', organizationId, eventOf(organizationId, stored, actor?.id ?? null))
        await caller.confirm()
        return stored
      })
    },

    /** Returns a page of the pending invitations of an organisation, newest first. */
    async list (
      caller: Caller, id: string, query: { limit: number, after?: string | undefined }
    ): Promise<Page<InvitationRow>> {
      const { organization } = await read(caller, 'members:invite', id)
      const page = await listInvitations(db, organization.id, query)
      await caller.confirm()
      return page
    },

    /** Withdraws an invitation. Throws `InvitationNotFound`. */
    async withdraw (caller: Caller, id: string, invitationId: string): Promise<void> {
      await db.transaction().execute(async (trx) => {
        const { organization: { id: organizationId } } = await lock(trx, caller, 'members:invite', id)
        const deleted = await deleteInvitation(trx, organizationId, invitationId)
        if (!deleted) throw new InvitationNotFound()
        await audit.add(caller, { action: 'organization.withdraw-invitation', organizationId }, trx)
        await storeEvent(
          trx, 'invitation.withdrawn', organizationId, eventOf(organizationId, deleted, caller.actor?.id ?? null)
        )
        await caller.confirm()
      })
    },

    /** Returns what the recipient of an invitation sees of it. Throws `InvalidInput` if it is void. */
    async check (token: string): Promise<CheckedInvitation> {
      const { organizationId, organizationName, email, role, inviter } = await open(db, hashSecret(token))
      const [user] = await findUsersByEmail(db, [email])
      return {
        organization: { id: organizationId, name: organizationName },
        email,
        role,
        invitedBy: inviter?.user.name ?? null,
        hasAccount: user !== undefined,
      }
    },

    /**
     * Makes the caller a member, or a new user if nobody has the address, whom the token of the mail proves to have it.
     * Throws `InvalidInput` if the invitation is void, `OtherAddress`, `InvitationLoginRequired`, `PasswordRequired`,
     * `SessionRequired`, `AlreadyMember`, `TooManyMembers`, `TooManyOrganizations`, and what hooks of the host throw.
     */
    async accept (caller: Caller, { token, ...given }: AcceptInvitation): Promise<AcceptedInvitation> {
      const hash = hashSecret(token)
      const invitation = await open(db, hash)
      return caller.actor
        ? acceptAsUser(caller, hash, invitation)
        : acceptAsNewcomer(caller, hash, invitation, given)
    },

    /**
     * Returns the hash of the token of an invitation that a newcomer is about to accept by a provider. Throws
     * `InvalidInput` if it is void, and `InvitationLoginRequired`.
     */
    async prepareJoin (token: string): Promise<Uint8Array> {
      const hash = hashSecret(token)
      const { email } = await open(db, hash)
      await rejectExisting(email)
      return hash
    },

    /**
     * Creates the user of an invitation, to whose address a provider has authenticated its owner, without a password.
     * Throws `InvalidInput` if the invitation is void by now, `OtherAddress`, `InvitationLoginRequired`, and what
     * `accept` throws.
     * @param inTransaction adds what belongs to the user
     */
    async acceptByProvider (
      caller: Caller, hash: Uint8Array, { name, email: proven }: { name: string, email: string },
      inTransaction: (trx: Database, created: UserRow) => Promise<void>
    ): Promise<UserRow> {
      const invitation = await open(db, hash)
      const { email } = invitation
      if (foldEmail(proven) !== foldEmail(email)) throw new OtherAddress()
      await rejectExisting(email)
      return createNewcomer(caller, hash, invitation, { name, email }, (trx, _, created) => inTransaction(trx, created))
    },
  }
}

// Programs that show mails make links of what looks like an address.
const withoutLinks = (name: string): string => name.replace(/\.(?=\S)/g, '. ')
