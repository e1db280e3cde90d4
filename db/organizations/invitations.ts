import { sql } from 'kysely'
import { newId } from '../driver/ids.ts'
import { isUuid } from '../driver/postgres.ts'
import { toPage, type Page } from '../tables/page.ts'
import type { Row } from '../tables/row.ts'
import type { Database } from '../tables/index.ts'
import type { OrganizationInvitationsTable } from '../tables/organizations.ts'
import { hasEmail } from '../users/user-keys.ts'
import type { MembershipRow } from './organizations.ts'

const columns = [
  'id', 'email', 'role', 'invited_by as invitedBy', 'created_at as createdAt', 'expires_at as expiresAt',
] as const

export type InvitationRow =
  Row<OrganizationInvitationsTable, 'id' | 'email' | 'role' | 'invited_by' | 'created_at' | 'expires_at'>

const isPending = sql<boolean>`expires_at > clock_timestamp()`

export interface NewInvitation {
  hash: Uint8Array
  organizationId: string
  email: string
  role: string
  invitedBy: string | null
  /** The membership of the user who invites, with which the invitation ends. */
  membershipId: string | null
  days: number
}

/** Stores an invitation to an organisation that is locked. It replaces the one for the same address. */
export async function storeInvitation (
  trx: Database, { hash, organizationId, email, role, invitedBy, membershipId, days }: NewInvitation
): Promise<InvitationRow> {
  await trx.deleteFrom('organization_invitations')
    .where('organization_id', '=', organizationId).where(hasEmail(email)).execute()
  return trx.insertInto('organization_invitations')
    .values({
      id: newId(trx),
      hash,
      organization_id: organizationId,
      email,
      role,
      invited_by: invitedBy,
      membership_id: membershipId,
      expires_at: sql<Date>`clock_timestamp() + make_interval(days => ${days}::integer)`,
    })
    .returning(columns).executeTakeFirstOrThrow()
}

/** Returns whether an organisation has fewer than `max` pending invitations, without the one for an address. */
export async function hasRoomForInvitation (
  trx: Database, organizationId: string, email: string, max: number
): Promise<boolean> {
  const { count } = await trx.selectFrom(trx.selectFrom('organization_invitations').select('id')
    .where('organization_id', '=', organizationId).where(isPending).where(({ not }) => not(hasEmail(email)))
    .limit(max).as('some'))
    .select(sql<number>`count(*)::integer`.as('count')).executeTakeFirstOrThrow()
  return count < max
}

/** Returns whether a member has an address. An address without an account takes as long as others. */
export async function isMemberAddress (trx: Database, organizationId: string, email: string): Promise<boolean> {
  const member = await trx.selectFrom('users').innerJoin('memberships', 'memberships.user_id', 'users.id')
    .select('memberships.id').where('organization_id', '=', organizationId).where(hasEmail(email)).executeTakeFirst()
  return member !== undefined
}

/** Returns a page of the pending invitations of an organisation, newest first. */
export async function listInvitations (
  db: Database, organizationId: string, { limit, after }: { limit: number, after?: string | undefined }
): Promise<Page<InvitationRow>> {
  const rows = await db.selectFrom('organization_invitations').select(columns)
    .where('organization_id', '=', organizationId).where(isPending)
    .$if(after !== undefined, (query) => query.where('id', '<', after!))
    .orderBy('id', 'desc').limit(limit + 1).execute()
  return toPage(rows, limit)
}

/** Returns whether a user has sent invitations to an organisation that may be pending. */
export async function hasInvited (db: Database, organizationId: string, userId: string): Promise<boolean> {
  if (!isUuid(userId)) return false
  const sent = await db.selectFrom('organization_invitations').select('id')
    .where('organization_id', '=', organizationId).where('invited_by', '=', userId).executeTakeFirst()
  return sent !== undefined
}

/** Deletes an invitation of an organisation. Returns it, or undefined if there is none. */
export async function deleteInvitation (
  trx: Database, organizationId: string, id: string
): Promise<InvitationRow | undefined> {
  if (!isUuid(id)) return undefined
  return trx.deleteFrom('organization_invitations')
    .where('organization_id', '=', organizationId).where('id', '=', id).returning(columns).executeTakeFirst()
}

/**
 * Deletes the invitations that a member has sent, but those to roles to which the member may still invite.
 * @param roles those roles
 */
export async function keepInvitationsBy (
  trx: Database, membershipId: string, roles: readonly string[]
): Promise<void> {
  await trx.deleteFrom('organization_invitations').where('membership_id', '=', membershipId)
    .$if(roles.length > 0, (query) => query.where('role', 'not in', roles)).execute()
}

/** An invitation with what decides whether it is valid, and what its recipient sees. */
export interface OpenInvitation extends InvitationRow {
  organizationId: string
  organizationName: string
  /** The membership of the user who has invited, as it is now; null for somebody who was no member then. */
  membership: MembershipRow | null
}

/** Returns the pending invitation of a token's hash, or undefined. Whether the inviter may invite is not checked. */
export async function findInvitation (db: Database, hash: Uint8Array): Promise<OpenInvitation | undefined> {
  const row = await db.selectFrom('organization_invitations as invitation')
    .innerJoin('organizations', 'organizations.id', 'invitation.organization_id')
    .leftJoin('memberships', 'memberships.id', 'invitation.membership_id')
    .select([
      'invitation.id', 'invitation.email', 'invitation.role', 'invitation.invited_by as invitedBy',
      'invitation.created_at as createdAt', 'invitation.expires_at as expiresAt',
      'organizations.id as organizationId', 'organizations.name as organizationName',
      'memberships.id as membershipId', 'memberships.role as memberRole',
    ])
    .where('hash', '=', hash).where('invitation.expires_at', '>', sql<Date>`clock_timestamp()`).executeTakeFirst()
  if (!row) return undefined
  const { membershipId, memberRole, ...invitation } = row
  return { ...invitation, membership: membershipId === null ? null : { id: membershipId, role: memberRole! } }
}

/** Deletes the invitation of a token's hash. Returns false if it was used, withdrawn or replaced meanwhile. */
export async function useInvitation (trx: Database, hash: Uint8Array): Promise<boolean> {
  const { numDeletedRows } = await trx.deleteFrom('organization_invitations').where('hash', '=', hash).where(isPending)
    .executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}

/** Deletes the invitations of an organisation for an address, once its user is a member. */
export async function deleteInvitationsFor (trx: Database, organizationId: string, email: string): Promise<void> {
  await trx.deleteFrom('organization_invitations')
    .where('organization_id', '=', organizationId).where(hasEmail(email)).execute()
}

/** Deletes the invitations that a user has sent, because somebody else may have sent them. */
export async function voidInvitationsOf (trx: Database, userId: string): Promise<void> {
  await trx.deleteFrom('organization_invitations').where('invited_by', '=', userId).execute()
}
