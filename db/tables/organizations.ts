import type { Generated, GeneratedAlways } from 'kysely'

/** An organisation, which always has an owner who can log in (contract 19.6). */
export interface OrganizationsTable {
  id: string
  name: string
  /** Unique: lower-case ASCII. */
  slug: string
  created_at: Generated<Date>
  updated_at: Generated<Date>
  /** Every update changes it; a bigint, which is read as text. */
  row_version: GeneratedAlways<string>
}

/**
 * That a user belongs to an organisation, in a role. Another role is another membership: the id changes. When a row is
 * deleted or gets another id, by whatever means, a trigger adds the former id to `ended_sessions`, so that all nodes
 * reject the tokens that were issued for it.
 */
export interface MembershipsTable {
  id: string
  organization_id: string
  user_id: string
  role: string
  created_at: Generated<Date>
}

/** An invitation to an organisation, whose secret was mailed. One is pending for each organisation and address. */
export interface OrganizationInvitationsTable {
  id: string
  /** SHA-256 of the token in the mail. */
  hash: Uint8Array
  organization_id: string
  email: string
  role: string
  /** The user who has invited; null if it was the host. */
  invited_by: string | null
  /** The membership of the user who has invited; null if it was the host, or an admin of the service. */
  membership_id: string | null
  created_at: Generated<Date>
  expires_at: Date
}
