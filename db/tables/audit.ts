import type { Generated } from 'kysely'

/** An entry of the account log: who did what and when. It remains when the users it refers to are deleted. */
export interface AuditTable {
  /** A UUIDv7, so ids are in order of time. */
  id: string
  /** For example `login` or `password.change`. */
  action: string
  /** The id of the user who did it; null if unknown. */
  actor_id: string | null
  /**
   * The id of the user whose account was affected; null if there is none, as for a failed login with an unknown
   * address.
   */
  user_id: string | null
  session_id: string | null
  /** The API key with which the actor did it; null without one. */
  key_id: string | null
  /** The organisation that it concerns; null if it concerns none. */
  organization_id: Generated<string | null>
  address: string
  user_agent: string
  created_at: Generated<Date>
}

/** How many entries of an action the account log has got on a day (UTC). See `db/admin/counts.ts`. */
export interface AuditCountsTable {
  /** A date, such as 2026-11-27. */
  day: string
  action: string
  /** A bigint, which is read as text. */
  count: string
}

/** How many logins have failed from a network within a minute, until their event is stored. */
export interface FailedLoginsTable {
  /** When the minute began. */
  minute: Date
  /** See `networkOf` in `schema/http/network.ts`. */
  network: string
  count: number
}

/** One row: the last entry of the account log that was counted. */
export interface AuditCountedTable {
  is_only: Generated<boolean>
  until: string
}
