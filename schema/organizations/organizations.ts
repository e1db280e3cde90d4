import { Type, type Static } from '@sinclair/typebox'
import { defineError, InvalidInput } from '../http/errors.ts'
import { pageQuery } from '../http/params.ts'
import { MailToken } from '../mail-links/mail-token.ts'
import { Email, exampleUser, Id, Instant, line, Name, NewPassword } from '../strings/text.ts'

/** There is no such organisation, or the reader is no member of it, which is the same to the reader. */
export const OrganizationNotFound = defineError('ORGANIZATION_NOT_FOUND', 'Organisation not found', 404)
export const MembershipNotFound = defineError('MEMBERSHIP_NOT_FOUND', 'This user is no member of the organisation', 404)
export const InvitationNotFound = defineError('INVITATION_NOT_FOUND', 'Invitation not found', 404)
export const SlugTaken = defineError('SLUG_TAKEN', 'Another organisation has this slug', 409)
export const AlreadyMember = defineError('ALREADY_MEMBER', 'This user is a member of the organisation already', 409)
export const OrganizationInUse =
  defineError('ORGANIZATION_IN_USE', 'The organisation cannot be deleted, because other data refers to it', 409)
/** An organisation would have no owner who can log in. `organizations` is the names of those of which it is true. */
export class LastOwner extends defineError<string>(
  'LAST_OWNER', 'This would leave an organisation without an owner who can log in: make another member an owner first, ' +
    'or delete the organisation (%s)', 409
) {
  readonly organizations: string

  constructor (organizations: string) {
    super(organizations)
    this.organizations = organizations
  }
}

export const TooManyOrganizations = defineError(
  'TOO_MANY_ORGANIZATIONS', 'A user may be a member of %s organisations: leave one first', 409
)
export const TooManyMembers = defineError('TOO_MANY_MEMBERS', 'An organisation may have %s members', 409)
export const TooManyInvitations = defineError(
  'TOO_MANY_INVITATIONS', 'An organisation may have %s pending invitations: withdraw one first', 409
)
/** An invitation goes to an address, and only a user who has proved to have it may accept it. */
export const OtherAddress = defineError(
  'OTHER_ADDRESS', 'The invitation is for another e-mail address than that of this account, or this address is not verified', 403
)

/** A route of the host is about the organisation of the token. */
export const OrganizationRequired = defineError(
  'ORGANIZATION_REQUIRED', 'This needs a token or an API key for an organisation', 403
)

/** An account has the address of the invitation, so its user accepts it. */
export const InvitationLoginRequired = defineError(
  'LOGIN_REQUIRED', 'An account has the address of this invitation: log in to it first', 403
)

const MIN_SLUG = 3
const MAX_SLUG = 40
const SLUG = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])$/
// What paths of pages may mean something else by.
const RESERVED = new Set([
  'account', 'accounts', 'admin', 'api', 'app', 'auth', 'billing', 'console', 'dashboard', 'docs', 'graphql', 'health',
  'help', 'invitation', 'invitations', 'login', 'logout', 'me', 'members', 'new', 'organization', 'organizations',
  'owner', 'public', 'root', 'settings', 'sign-up', 'static', 'support', 'system', 'user', 'users', 'www',
])
// Names are in mails that strangers may cause. A link in them would be theirs.
const LINK = /:\/\/|\bwww\./i

/** The name of an organisation: 1 to 100 characters, trimmed. */
const OrganizationName = line({ trim: true, minLength: 1, maxLength: 100 })
const Slug = line({
  minLength: MIN_SLUG,
  maxLength: MAX_SLUG,
  description: 'Unique: lower-case letters of ASCII, digits, and hyphens between them',
})
const RoleName = line({ minLength: 1, maxLength: 40, description: '`owner`, `admin`, `member`, or one of the options' })

/** Throws `InvalidInput` for what the schema accepts and no organisation can have. */
export function checkOrganization ({ name, slug }: { name?: string | undefined, slug?: string | undefined }): void {
  const problems = [
    ...name !== undefined && LINK.test(name) ? ['name must not have a link'] : [],
    ...slug !== undefined && !SLUG.test(slug) ? ['slug must have lower-case letters of ASCII, digits, and hyphens between them only'] : [],
    ...slug !== undefined && RESERVED.has(slug) ? [`slug must not be ${slug}, which is reserved`] : [],
  ]
  if (problems.length > 0) throw new InvalidInput(...problems)
}

/** Returns a slug for an organisation whose founder has chosen none, which may be taken or not be valid. */
export function slugOf (name: string): string {
  const words = name.normalize('NFKD').toLowerCase().replace(/\p{M}/gu, '').replace(/[^a-z0-9]+/g, '-')
  return words.replace(/^-+/, '').slice(0, MAX_SLUG - 7).replace(/-+$/, '')
}

/** Returns whether a text can be a slug. */
export const isSlug = (text: string): boolean => text.length >= MIN_SLUG && SLUG.test(text) && !RESERVED.has(text)

/** An organisation in responses. */
export const Organization = Type.Object({
  id: Id,
  name: Type.String(),
  slug: Type.String(),
  createdAt: Instant,
  updatedAt: Instant,
}, { title: 'Organization', description: 'An organisation' })

/** An organisation of a user, with the role of the user. */
export const OwnOrganization = Type.Object({
  ...Organization.properties,
  role: Type.String({ description: 'The role of the user in the organisation' }),
  membershipId: Id,
}, { title: 'OwnOrganization', description: 'An organisation of which the user is a member' })

export const OrganizationList = Type.Array(Organization, { description: 'Organisations, newest first' })
export const OwnOrganizationList =
  Type.Array(OwnOrganization, { description: 'The organisations of the authenticated user, newest membership first' })

/** The body of POST /api/organizations. */
export const CreateOrganization = Type.Object({
  name: OrganizationName,
  slug: Type.Optional(Slug),
}, { title: 'CreateOrganization', examples: [{ name: 'Analytical Engines', slug: 'analytical-engines' }] })

/** The body of PATCH /api/organizations/{id}. */
export const PatchOrganization = Type.Object({
  name: Type.Optional(OrganizationName),
  slug: Type.Optional(Slug),
}, { title: 'PatchOrganization', examples: [{ name: 'Analytical Engines' }] })

/** The query of GET /api/organizations. */
export const ListOrganizations = Type.Object({
  q: Type.Optional(line({
    trim: true, minLength: 2, maxLength: 100, description: 'Only organisations whose name or slug begins with this',
  })),
  ...pageQuery('Organisations'),
})

/** A member of an organisation. */
export const Member = Type.Object({
  id: Type.String({ description: 'The id of the membership. With another role it is another one' }),
  userId: Id,
  name: Type.String(),
  email: Type.Optional(Type.String({ description: 'Absent if the reader may not see it' })),
  role: Type.String(),
  disabled: Type.Optional(Type.Boolean({ description: 'Whether an admin of the service has disabled the user. Absent like `email`' })),
  createdAt: Instant,
}, { title: 'Member', description: 'A member of an organisation' })

export const MemberList = Type.Array(Member, { description: 'Members, in the order in which their accounts were created' })

/** The query of GET /api/organizations/{id}/members. */
export const ListMembers = Type.Object({
  role: Type.Optional(line({ maxLength: 40, description: 'Only members with this role' })),
  q: Type.Optional(line({
    trim: true,
    minLength: 2,
    maxLength: 100,
    description: 'Only members of whose name some word begins with this, regardless of case',
  })),
  ...pageQuery('Members'),
})

/** The body of POST /api/organizations/{id}/members, with which an admin of the service adds a user. */
export const AddMember = Type.Object({
  userId: Type.String(), role: RoleName,
}, { title: 'AddMember', examples: [{ userId: '01890a5d-ac96-774b-bcce-b302099a8057', role: 'member' }] })

/** The body of PATCH /api/organizations/{id}/members/{userId}. */
export const PatchMember = Type.Object({ role: RoleName }, { title: 'PatchMember', examples: [{ role: 'admin' }] })

/** An invitation that is pending. */
export const Invitation = Type.Object({
  id: Id,
  email: Type.String(),
  role: Type.String(),
  invitedBy: Type.Unsafe<string | null>({
    type: ['string', 'null'], description: 'The id of the user who has invited; null if it was the service',
  }),
  createdAt: Instant,
  expiresAt: Instant,
}, { title: 'Invitation', description: 'An invitation to an organisation that is pending' })

export const InvitationList = Type.Array(Invitation, { description: 'Invitations that are pending, newest first' })

/** The body of POST /api/organizations/{id}/invitations. */
export const CreateInvitation = Type.Object({
  email: Email, role: Type.Optional(RoleName),
}, { title: 'CreateInvitation', examples: [{ email: exampleUser.email, role: 'member' }] })

export const ListInvitations = Type.Object(pageQuery('Invitations'))

/** The response of POST /api/auth/invitations/check. */
export const CheckedInvitation = Type.Object({
  organization: Type.Object({ id: Id, name: Type.String() }),
  email: Type.String({ description: 'The address to which it was sent' }),
  role: Type.String(),
  invitedBy: Type.Unsafe<string | null>({
    type: ['string', 'null'], description: 'The name of the user who has invited; null if it was the service',
  }),
  hasAccount: Type.Boolean({ description: 'Whether an account has the address. Its user accepts it in a session' }),
}, { title: 'CheckedInvitation', description: 'The invitation can be accepted' })

/** The body of POST /api/auth/invitations/accept. */
export const AcceptInvitation = Type.Object({
  token: MailToken,
  name: Type.Optional(Name),
  password: Type.Optional(NewPassword),
}, { title: 'AcceptInvitation', examples: [{ token: 'the-token-of-the-link' }] })

export type AcceptInvitation = Static<typeof AcceptInvitation>

/** The response of POST /api/auth/invitations/accept. */
export const AcceptedInvitation = Type.Object({
  id: Type.String({ description: 'The id of the membership' }),
  organizationId: Id,
  userId: Id,
  role: Type.String(),
}, { title: 'AcceptedInvitation', description: 'The user is a member of the organisation' })

/** The parameters of a member, and of an invitation. */
export const MemberParams = Type.Object({ id: Type.String(), userId: Type.String() })
export const InvitationParams = Type.Object({ id: Type.String(), invitationId: Type.String() })

export type CreateOrganization = Static<typeof CreateOrganization>
export type PatchOrganization = Static<typeof PatchOrganization>
export type CreateInvitation = Static<typeof CreateInvitation>
