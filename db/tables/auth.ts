import type { Generated } from 'kysely'

/** A session that has not ended. When a row is deleted, by whatever means, a trigger adds its id to `ended_sessions`. */
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

/** A token of a link that was mailed to set a password. It proves access to the user's mailbox, and can be used once. */
export interface PasswordTokensTable {
  /** SHA-256 of the token. */
  hash: Uint8Array
  user_id: string
  created_at: Generated<Date>
  expires_at: Date
}

/** A sign-up whose link has not been used. No user exists yet, and several sign-ups may be pending for one address. */
export interface SignUpsTable {
  /** SHA-256 of the token. */
  hash: Uint8Array
  name: string
  email: string
  password_hash: string
  /** The values of the host's fields, by name; null if there are none. */
  fields: unknown
  created_at: Generated<Date>
  expires_at: Date
}

/** A token of a link that was mailed to verify an address. It is deleted when the user gets another address. */
export interface EmailTokensTable {
  /** SHA-256 of the token. */
  hash: Uint8Array
  user_id: string
  /** The address to which the link was sent. */
  email: string
  /** The session in which the new address was requested; null if the token verifies the current address. */
  session_id: string | null
  created_at: Generated<Date>
  expires_at: Date
}

/** A token of a link that undoes a change of the address or the password, with the values from before the change. */
export interface UndoTokensTable {
  /** SHA-256 of the token. */
  hash: Uint8Array
  user_id: string
  /** In the order of a user's changes, whatever the clock does. */
  position: Generated<string>
  email: string
  email_verified: boolean
  email_changed_at: Date | null
  password_hash: string | null
  created_at: Generated<Date>
  expires_at: Date
}

/** The used part of a limit, for example of an account or a network. See `db/throttle/throttle.ts`. */
export interface ThrottleTable {
  /** The name of the limit, and the SHA-256 hash of what it is counted for. */
  key: string
  /** The time when the whole limit is available again. After that, the row has no effect. */
  free_at: Date
  /** The number of attempts that the last statement let through; that statement returns it. */
  granted: number
}

/** A recognised network: one that a user has logged in from. See `schema/http/network.ts`. */
export interface RecognisedNetworksTable {
  user_id: string
  network: string
  last_used_at: Generated<Date>
}

/**
 * The number of failed logins in a row. Unlike `throttle`, this table is not `unlogged`: a crash must not give an attacker another
 * hundred attempts.
 */
export interface LoginFailuresTable {
  /** SHA-256 of the e-mail address, which may belong to no user. */
  key: Uint8Array
  count: number
  last_failed_at: Generated<Date>
}
