import { sql } from 'kysely'
import type { IdentitiesTable } from '../tables/sign-in.ts'
import type { RecognisedNetworksTable } from '../tables/throttle.ts'
import type { MembershipsTable, OrganizationInvitationsTable } from '../tables/organizations.ts'
import type { PostsTable } from '../tables/posts.ts'
import type { Database } from '../tables/index.ts'
import type { Row } from '../tables/row.ts'
import { userLinks, type ExportedLinkKind, type UserLinkTable } from '../mail-links/kinds.ts'
import { MAIL } from '../outbox/mails.ts'
import { deliveryOwner } from '../outbox/owner.ts'
import { hasEmail } from './user-keys.ts'
import { linkColumns, type UploadLinkRow } from '../uploads/upload-links.ts'

/** An identity at a provider, with what identifies it there. */
export type ExportedIdentity =
  Row<IdentitiesTable, 'id' | 'provider' | 'issuer' | 'subject' | 'email' | 'created_at' | 'last_used_at'>

/** A link of a mail that works, without its token. */
export interface PendingLink {
  kind: ExportedLinkKind
  /** The address that it verifies or restores; null if there is none. */
  email: string | null
  createdAt: Date
  expiresAt: Date
}

/** A mail that was not sent yet, without its content. */
export interface PendingMail {
  /** The limit that it counts toward: see `MailBudget`. */
  kind: string
  to: string | null
  createdAt: Date
}

/** What is stored about an account besides its record and what lists of it show. There is little of it. */
export interface AccountData {
  hasPassword: boolean
  emailChangedAt: Date | null
  identities: ExportedIdentity[]
  /** The networks that the user has logged in from. */
  networks: Row<RecognisedNetworksTable, 'network' | 'last_used_at'>[]
  links: PendingLink[]
  mails: PendingMail[]
  memberships: ExportedMembership[]
  invitations: ExportedInvitation[]
}

/** A membership, with the name of the organisation. */
export type ExportedMembership =
  Row<MembershipsTable, 'id' | 'organization_id' | 'role' | 'created_at'> & { organization: string }

/** A pending invitation to an organisation, with its name. */
export type ExportedInvitation =
  Row<OrganizationInvitationsTable, 'id' | 'organization_id' | 'email' | 'role' | 'created_at' | 'expires_at'> &
  { organization: string }

// Mails are limited, and links expire.
const MAX_PENDING = 1000

/** Returns what is stored about the account of a user, or undefined if there is no such user. */
export async function findAccountData (db: Database, userId: string): Promise<AccountData | undefined> {
  const account = await db.selectFrom('users')
    .select([sql<boolean>`password_hash is not null`.as('hasPassword'), 'email_changed_at as emailChangedAt'])
    .where('id', '=', userId).executeTakeFirst()
  if (!account) return undefined
  const [identities, networks, links, mails, memberships, invitations] = await Promise.all([
    db.selectFrom('identities')
      .select(['id', 'provider', 'issuer', 'subject', 'email', 'created_at as createdAt', 'last_used_at as lastUsedAt'])
      .where('user_id', '=', userId).orderBy('created_at', 'desc').orderBy('id', 'desc').execute(),
    db.selectFrom('recognised_networks').select(['network', 'last_used_at as lastUsedAt'])
      .where('user_id', '=', userId).orderBy('last_used_at', 'desc').orderBy('network').execute(),
    listPendingLinks(db, userId),
    db.selectFrom('outbox')
      .select([
        sql<string>`data ->> 'budget'`.as('kind'), sql<string | null>`data ->> 'to'`.as('to'),
        'created_at as createdAt',
      ])
      .where('consumer', '=', sql.lit(MAIL)).where(deliveryOwner, '=', userId)
      .orderBy('position').limit(MAX_PENDING).execute(),
    db.selectFrom('memberships').innerJoin('organizations', 'organizations.id', 'memberships.organization_id')
      .select([
        'memberships.id', 'memberships.organization_id as organizationId', 'organizations.name as organization',
        'memberships.role', 'memberships.created_at as createdAt',
      ])
      .where('user_id', '=', userId).orderBy('memberships.created_at', 'desc').orderBy('memberships.id').execute(),
    listPendingInvitations(db, userId),
  ])
  return { ...account, identities, networks, links, mails, memberships, invitations }
}

// Those to an address that nobody has verified may be for somebody else.
async function listPendingInvitations (db: Database, userId: string): Promise<ExportedInvitation[]> {
  const user = await db.selectFrom('users').select('email')
    .where('id', '=', userId).where('email_verified', '=', true).executeTakeFirst()
  if (!user) return []
  return db.selectFrom('organization_invitations as invitation')
    .innerJoin('organizations', 'organizations.id', 'invitation.organization_id')
    .select([
      'invitation.id', 'invitation.organization_id as organizationId', 'organizations.name as organization',
      'invitation.email', 'invitation.role', 'invitation.created_at as createdAt', 'invitation.expires_at as expiresAt',
    ])
    .where(hasEmail(user.email, sql`invitation.email`)).where('invitation.expires_at', '>', sql<Date>`now()`)
    .orderBy('invitation.id', 'desc').limit(MAX_PENDING).execute()
}

async function listPendingLinks (db: Database, userId: string): Promise<PendingLink[]> {
  const none = sql<string | null>`null::text`
  const [first, ...others] = userLinks.map(({ table, exportedAs, hasAddress }) =>
    db.selectFrom<UserLinkTable>(table).where('user_id', '=', userId).select([
      exportedAs.as('kind'), (hasAddress ? sql<string | null>`email` : none).as('email'),
      'created_at as createdAt', 'expires_at as expiresAt',
    ]))
  return db.selectFrom(others.reduce((links, more) => links.unionAll(more), first!).as('link')).selectAll()
    .where('expiresAt', '>', sql<Date>`now()`).orderBy('createdAt').limit(MAX_PENDING).execute()
}

/** A post as an export shows it. */
export type ExportedPost = Row<PostsTable, 'id' | 'title' | 'content' | 'created_at' | 'updated_at'> &
  { position: string }

const POSTS_PER_READ = 200
/** How many bytes of contents one statement reads, unless a single one is larger. */
export const BYTES_PER_READ = 128 * 1024

/** Returns some of the posts of a user before a position, newest first: none only if there are none left. */
export async function listExportedPosts (
  db: Database, userId: string, before: string | undefined
): Promise<ExportedPost[]> {
  const posts = db.selectFrom('posts')
    .select(['id', 'position', 'title', 'content', 'created_at as createdAt', 'updated_at as updatedAt'])
    .where('author_id', '=', userId)
    .$if(before !== undefined, (query) => query.where('position', '<', before!))
    .orderBy('position', 'desc').limit(POSTS_PER_READ)
  // PostgreSQL knows the size of a long text without reading it.
  const sized = db.selectFrom(posts.as('post')).selectAll('post').select([
    sql<number>`sum(octet_length(content)) over (order by position desc)`.as('total'),
    sql<number>`row_number() over (order by position desc)`.as('place'),
  ])
  return db.selectFrom(sized.as('post')).select(['id', 'position', 'title', 'content', 'createdAt', 'updatedAt'])
    .where(({ or, eb }) => or([eb('total', '<=', BYTES_PER_READ), eb('place', '=', 1)]))
    .orderBy('position', 'desc').execute()
}

/** A link to an upload, without its secret. */
export type ExportedLink = UploadLinkRow & { uploadId: string }

/** Returns the links to some uploads, newest first. */
export async function listLinksOfUploads (db: Database, uploadIds: readonly string[]): Promise<ExportedLink[]> {
  return db.selectFrom('upload_links').select(linkColumns).select('upload_id as uploadId')
    .where('upload_id', '=', sql<string>`any(${uploadIds}::uuid[])`).orderBy('id', 'desc').execute()
}
