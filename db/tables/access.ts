import type { Generated } from 'kysely'

/**
 * A session that has not ended. When a row is deleted, by whatever means, a trigger adds its id to `ended_sessions`.
 */
export interface SessionsTable {
  id: string
  user_id: string
  /** SHA-256 of the secret in the cookie. */
  secret_hash: Uint8Array
  /** The key that signs the cookie, including its number of rotations. */
  rotation_key: Uint8Array
  /** The number of rotations of the cookie. A cookie with a lower number is an old one. */
  rotations: Generated<number>
  /** The times of the latest rotations, oldest first. */
  rotated_at: Generated<Date[]>
  address: string
  user_agent: string
  created_at: Generated<Date>
  /** The time of the login or of the last refresh. */
  last_used_at: Generated<Date>
  /** The idle expiry or the absolute expiry, whichever is sooner. */
  expires_at: Date
  /** How the user was authenticated (RFC 8176). */
  amr: string[]
  /** When the user was authenticated last. */
  auth_time: Date
  /** The identity by which the session was started, which may be gone by now; null if it was another way. */
  identity_id: string | null
  /** How the provider calls its own session (`sid`), by which its logout ends this one; null if it does not say. */
  provider_sid: string | null
  /** Whether it is a session of the console, which has a cookie of its own and is never refreshed. */
  is_console: Generated<boolean>
  /** The session whose token has opened this one, which therefore ends with it; null if it was a login. */
  parent_id: string | null
}

/** An ended session whose access tokens may not have expired. Rows are kept for the lifetime of a token. */
export interface EndedSessionsTable {
  id: string
  ended_at: Generated<Date>
}

/**
 * A key that signs access tokens, Ed25519 or P-256, shared by all nodes. A trigger notifies them when a row is added,
 * changed or deleted.
 */
export interface SigningKeysTable {
  /** The `kid`: the RFC 7638 thumbprint of the public key. */
  id: string
  /** PKCS #8, PEM; encrypted if the node that stored it has a secret. */
  private_key: string
  /** SPKI, PEM. */
  public_key: string
  created_at: Generated<Date>
  /** The time from which it signs. By then every node knows it. */
  active_at: Generated<Date>
}
